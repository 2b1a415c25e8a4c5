/** Shows what will be spoken for the text that is to be read aloud, while it is written. */

import { createElement, find } from "./dom.js";
import { post } from "./server.js";

/** The pause in typing after which the preview is renewed. */
const DELAY_MS = 300;
const MAX_ROWS = 100;

let abortController = new AbortController();
let timer = 0;

/** Set up the preview. Nothing is requested while it is closed. */
export function startPreview() {
  find("read-preview").ontoggle = renew;
  find("read-text").addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(renew, DELAY_MS);
  });
}

async function renew() {
  if (!find("read-preview").open) return;
  abortController.abort();
  abortController = new AbortController();
  const { signal } = abortController;
  const input = find("read-text").value;
  try {
    show(input.trim() ? await post("v1/audio/normalize", { input }, signal) : null);
  } catch (error) {
    if (!signal.aborted) show({ text: error.message });
  }
}

function show(preview) {
  const { text = "", readings = [], unspoken = [] } = preview ?? {};
  const refused = unspoken.length > 0 ? ` (not spoken: ${unspoken.join(", ")})` : "";
  find("read-preview-text").textContent = text + refused;
  find("read-preview-forms").hidden = readings.length === 0;
  const rows = readings.slice(0, MAX_ROWS).map((reading) => {
    const cells = [reading.written, reading.class, reading.spoken];
    return createElement("tr", {}, ...cells.map((cell) => createElement("td", {}, cell)));
  });
  find("read-preview-forms").querySelector("tbody").replaceChildren(...rows);
}
