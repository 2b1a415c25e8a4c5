/** What is shown of the last request: its figures, its sound and its stages. */

import { element, find } from "./dom.js";
import { Measured } from "./measured.js";
import { ServerError, get } from "./server.js";
import { hideStages, showStages } from "./stages.js";
import { Waveform } from "./waveform.js";

const MEANINGS = {
  TTFT: "Time to the first text",
  TTFA: "Time to the first sound",
  RTF: "Real-time factor: seconds of making for each second of sound",
  Speech: "Sound that came",
  Gaps: "How often the sound ran dry",
};
/** The server ends a request a moment after its last byte. */
const PATIENCE_MS = 100;
const TRIES = 5;

let waveform = null;
let present = null;

/** A request leaves now; it takes the place of the one before. */
export function beginRequest() {
  waveform ??= new Waveform(find("last-sound"));
  waveform.clear();
  hideStages();
  present = new LastRequest();
  present.show();
  return present;
}

class LastRequest {
  #measured = new Measured();

  /** Text came. */
  text() {
    this.#measured.text();
    this.show();
  }

  /** Sound came: samples from -1 to 1, `rate` a second. */
  sound(samples, rate) {
    this.#measured.sound(samples.length / rate);
    if (this === present) waveform.push(samples, rate);
    this.show();
  }

  /** The sound ran dry so often. */
  gaps(count) {
    this.#measured.gap(count);
    this.show();
  }

  /** The request is over: show what the server says of its stages, which it may have forgotten. */
  async end(id) {
    for (let tries = 0; tries < TRIES && this === present; tries += 1) {
      await new Promise((resolve) => setTimeout(resolve, PATIENCE_MS));
      const timeline = await get(`v1/requests/${id}`).catch(unlessForgotten);
      if (timeline === null || this !== present) return;
      showStages(timeline);
      if (timeline.ended) return;
    }
  }

  show() {
    if (this !== present) return;
    const shown = this.#measured.figures().map(([name, value]) => {
      const term = element("dt", {}, element("abbr", { title: MEANINGS[name] }, name));
      return element("div", {}, term, element("dd", {}, value));
    });
    find("last-figures").replaceChildren(...shown);
  }
}

function unlessForgotten(error) {
  if (error instanceof ServerError && error.status === 404) return null;
  throw error;
}
