/** Shows the stages of a request, as the server recorded them, in a table with bars. */

import { createElement, find } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
/** Width of the bars' view box. */
const WIDTH = 1000;

/** Hide the stages of the last request. */
export function hideStages() {
  find("last-stages").hidden = true;
}

/** Show the stages of a response of `/v1/requests/{id}`. */
export function showStages({ seconds, stages }) {
  const rows = stages.map((stage) => createRow(stage, Math.max(seconds, 1e-9)));
  const region = find("last-stages");
  region.querySelector("tbody").replaceChildren(...rows);
  region.hidden = false;
}

function createRow(stage, seconds) {
  const until = stage.ended_s ?? seconds;
  const name = createElement("th", { scope: "row" }, stage.name);
  if (stage.error !== null) {
    name.append(" ", createElement("span", { className: "failed" }, stage.error));
  }
  const bar = createElement("td", { className: "bar" }, createBar(stage, until, seconds));
  const numbers = [stage.began_s, stage.first_s, until].map(createNumberCell);
  return createElement("tr", {}, name, ...numbers, bar);
}

function createNumberCell(seconds) {
  const text = seconds === null ? "" : seconds.toFixed(3);
  return createElement("td", { className: "number" }, text);
}

/** Create a bar from the stage's start to its end, with a line at its first output. */
function createBar(stage, until, seconds) {
  const toX = (time) => (time / seconds) * WIDTH;
  const svg = createSvgElement("svg", { viewBox: `0 0 ${WIDTH} 10`, preserveAspectRatio: "none" });
  svg.ariaHidden = "true";
  const width = Math.max(toX(until - stage.began_s), WIDTH / 200);
  svg.append(createSvgElement("rect", { x: toX(stage.began_s), y: 1, width, height: 8 }));
  if (stage.first_s !== null) {
    const x = toX(stage.first_s);
    svg.append(createSvgElement("line", { x1: x, x2: x, y1: 0, y2: 10 }));
  }
  return svg;
}

function createSvgElement(name, attributes) {
  const node = document.createElementNS(SVG, name);
  Object.entries(attributes).forEach(([key, value]) => node.setAttribute(key, value));
  return node;
}
