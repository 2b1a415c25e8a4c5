/** Sends the microphone's samples to the page, resampled to the requested rate. */

import { Resampler } from "./resampler.js";

/** Length of the audio in one message to the page. */
const CHUNK_SECONDS = 0.04;

class Microphone extends AudioWorkletProcessor {
  #resampler;
  #chunkSamples;
  #buffer = [];

  constructor({ processorOptions: { rate } }) {
    super();
    this.#resampler = new Resampler(sampleRate, rate);
    this.#chunkSamples = CHUNK_SECONDS * rate;
  }

  process([[input]]) {
    // The input has no channel once the microphone is closed.
    if (input === undefined) return true;
    this.#buffer.push(...this.#resampler.push(input));
    if (this.#buffer.length >= this.#chunkSamples) {
      this.port.postMessage(Float32Array.from(this.#buffer));
      this.#buffer = [];
    }
    return true;
  }
}

registerProcessor("microphone", Microphone);
