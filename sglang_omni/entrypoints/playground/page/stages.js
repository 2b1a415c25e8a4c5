/** The stages of a request, as the server saw them: a table with a bar for each. */

import { element, find } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
/** The bars' own unit of width. */
const WIDTH = 1000;

/** Take the last request's stages away. */
export function hideStages() {
  find("last-stages").hidden = true;
}

/** Show what `/v1/requests/{id}` tells. */
export function showStages({ seconds, stages }) {
  const rows = stages.map((stage) => row(stage, Math.max(seconds, 1e-9)));
  const region = find("last-stages");
  region.querySelector("tbody").replaceChildren(...rows);
  region.hidden = false;
}

function row(stage, seconds) {
  const until = stage.ended_s ?? seconds;
  const name = element("th", { scope: "row" }, stage.name);
  if (stage.error !== null) {
    name.append(" ", element("span", { className: "failed" }, stage.error));
  }
  const bar = element("td", { className: "bar" }, drawing(stage, until, seconds));
  return element("tr", {}, name, ...[stage.began_s, stage.first_s, until].map(number), bar);
}

function number(seconds) {
  const text = seconds === null ? "" : seconds.toFixed(3);
  return element("td", { className: "number" }, text);
}

/** From the stage's begin to its end, with a line at its first output. */
function drawing(stage, until, seconds) {
  const place = (moment) => (moment / seconds) * WIDTH;
  const picture = drawn("svg", { viewBox: `0 0 ${WIDTH} 10`, preserveAspectRatio: "none" });
  picture.ariaHidden = "true";
  const width = Math.max(place(until - stage.began_s), WIDTH / 200);
  picture.append(drawn("rect", { x: place(stage.began_s), y: 1, width, height: 8 }));
  if (stage.first_s !== null) {
    const x = place(stage.first_s);
    picture.append(drawn("line", { x1: x, x2: x, y1: 0, y2: 10 }));
  }
  return picture;
}

function drawn(name, attributes) {
  const made = document.createElementNS(SVG, name);
  Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
  return made;
}
