/** Plays the samples that the page sends to its port, on the browser's audio thread. */

import { PlaybackQueue } from "./playback_queue.js";

class Playback extends AudioWorkletProcessor {
  #queue = new PlaybackQueue(sampleRate);
  #drained = true;

  constructor() {
    super();
    this.port.onmessage = ({ data }) => this.#handleMessage(data);
  }

  #handleMessage({ push, end, stop }) {
    if (push) {
      this.#queue.push(push);
      this.#drained = false;
    }
    if (end) this.#queue.end();
    if (stop) {
      this.port.postMessage({ stopped: this.#queue.stop() });
      this.#drained = true;
    }
  }

  process(_, [[output]]) {
    this.#queue.fill(output);
    if (this.#queue.drained && !this.#drained) {
      this.#drained = true;
      this.port.postMessage({ drained: true, underruns: this.#queue.underruns });
      this.#queue.underruns = 0;
    }
    return true;
  }
}

registerProcessor("playback", Playback);
