/** Shows the events of a session, one per line; repeated events are counted in one line. */

import { createElement, find } from "./dom.js";

const MAX_LINES = 500;
const MAX_CHARACTERS = 300;
const ARROWS = { client: "→", server: "←" };

let last = null;
let startedAt = 0;

/** Clear the log for a new session. */
export function clearEvents() {
  find("talk-events").replaceChildren();
  last = null;
  startedAt = performance.now();
}

/** Add an event of the "client" or the "server". */
export function logEvent(event, sender) {
  const label = `${ARROWS[sender]} ${event.type}`;
  if (last?.label === label && isRepeatable(event)) {
    last.count += 1;
    last.line.textContent = `${last.text} × ${last.count}`;
    return;
  }
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(2);
  const text = `${seconds} ${label}`;
  const line = createElement("li", { ariaLabel: `${sender}: ${event.type}` }, text);
  if (!isRepeatable(event)) line.append(` ${formatDetails(event)}`);
  last = { label, text, line, count: 1 };
  const list = find("talk-events");
  list.append(line);
  if (list.children.length > MAX_LINES) list.firstElementChild.remove();
  list.scrollTo({ top: list.scrollHeight });
}

const isRepeatable = ({ type }) => type.endsWith(".delta") || type.endsWith("_buffer.append");

function formatDetails({ type, event_id, ...rest }) {
  const text = JSON.stringify(rest);
  return text.length > MAX_CHARACTERS ? `${text.slice(0, MAX_CHARACTERS)}…` : text;
}
