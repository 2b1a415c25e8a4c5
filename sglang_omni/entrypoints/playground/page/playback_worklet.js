/** Plays what the page sends to its port, on the browser's audio thread. */

import { PlaybackQueue } from "./playback_queue.js";

class Playback extends AudioWorkletProcessor {
  #queue = new PlaybackQueue(sampleRate);
  #drained = true;

  constructor() {
    super();
    this.port.onmessage = ({ data }) => this.#take(data);
  }

  #take({ push, end, silence }) {
    if (push) {
      this.#queue.push(push);
      this.#drained = false;
    }
    if (end) this.#queue.end();
    if (silence) {
      this.port.postMessage({ silenced: this.#queue.silence() });
      this.#drained = true;
    }
  }

  process(_, [[output]]) {
    this.#queue.fill(output);
    if (this.#queue.drained && !this.#drained) {
      this.#drained = true;
      this.port.postMessage({ drained: true, gaps: this.#queue.gaps });
      this.#queue.gaps = 0;
    }
    return true;
  }
}

registerProcessor("playback", Playback);
