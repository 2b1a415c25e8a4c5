/** The events of a session, one a line; those that repeat are counted. */

import { element, find } from "./dom.js";

const MOST_LINES = 500;
const MOST_CHARACTERS = 300;
const ARROWS = { client: "→", server: "←" };

let last = null;
let began = 0;

/** Begin with another session. */
export function clearEvents() {
  find("talk-events").replaceChildren();
  last = null;
  began = performance.now();
}

/** Add an event of the "client" or the "server". */
export function logEvent(event, sender) {
  const name = `${ARROWS[sender]} ${event.type}`;
  if (last?.name === name && isPiece(event)) {
    last.count += 1;
    last.line.textContent = `${last.text} × ${last.count}`;
    return;
  }
  const at = ((performance.now() - began) / 1000).toFixed(2);
  const text = `${at} ${name}`;
  const line = element("li", { ariaLabel: `${sender}: ${event.type}` }, text);
  if (!isPiece(event)) line.append(` ${details(event)}`);
  last = { name, text, line, count: 1 };
  const list = find("talk-events");
  list.append(line);
  if (list.children.length > MOST_LINES) list.firstElementChild.remove();
  list.scrollTo({ top: list.scrollHeight });
}

const isPiece = ({ type }) => type.endsWith(".delta") || type.endsWith("_buffer.append");

function details({ type, event_id, ...rest }) {
  const text = JSON.stringify(rest);
  return text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)}…` : text;
}
