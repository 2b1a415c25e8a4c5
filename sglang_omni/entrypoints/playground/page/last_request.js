/** Shows the last request: its figures, its waveform and its stages. */

import { createElement, find } from "./dom.js";
import { RequestTimings } from "./measured.js";
import { ServerError, get } from "./server.js";
import { hideStages, showStages } from "./stages.js";
import { Waveform } from "./waveform.js";

const MEANINGS = {
  "First text": "Seconds until the first text",
  "First sound": "Seconds until the first sound",
  "Real-time ratio": "Seconds of generation for a second of sound; above 1 there are gaps",
  Speech: "Length of the received audio",
  Gaps: "Number of playback underruns",
  Image: "Time to the first finished image",
};
/** Interval between polls: the server ends a request shortly after its last byte. */
const POLL_MS = 100;
const MAX_POLLS = 5;

let waveform = null;
let current = null;

/** Start to show a new request in place of the last one. */
export function startRequest() {
  waveform ??= new Waveform(find("last-sound"));
  waveform.clear();
  hideStages();
  current = new LastRequest();
  current.show();
  return current;
}

class LastRequest {
  #timings = new RequestTimings();

  /** Record that text arrived. */
  recordText() {
    this.#timings.recordText();
    this.show();
  }

  /** Record audio that arrived: samples from -1 to 1 at `rate` Hz. */
  recordAudio(samples, rate) {
    this.#timings.recordAudio(samples.length / rate);
    if (this === current) waveform.push(samples, rate);
    this.show();
  }

  /** Record that a finished image arrived. */
  recordImage() {
    this.#timings.recordImage();
    this.show();
  }

  /** Record playback underruns. */
  recordUnderruns(count) {
    this.#timings.recordUnderruns(count);
    this.show();
  }

  /** The request has ended: show its stages, unless the server has dropped them. */
  async end(id) {
    for (let tries = 0; tries < MAX_POLLS && this === current; tries += 1) {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      const timeline = await get(`v1/requests/${id}`).catch(nullIfNotFound);
      if (timeline === null || this !== current) return;
      showStages(timeline);
      if (timeline.ended) return;
    }
  }

  show() {
    if (this !== current) return;
    const shown = this.#timings.getFigures().map(([name, value]) => {
      const term = createElement("dt", {}, createElement("abbr", { title: MEANINGS[name] }, name));
      return createElement("div", {}, term, createElement("dd", {}, value));
    });
    find("last-figures").replaceChildren(...shown);
  }
}

function nullIfNotFound(error) {
  if (error instanceof ServerError && error.status === 404) return null;
  throw error;
}
