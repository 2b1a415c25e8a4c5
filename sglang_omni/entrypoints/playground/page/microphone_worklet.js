/** Hands what the microphone hears to the page, at the rate that the page asks for. */

import { Resampler } from "./resampler.js";

/** A message to the page carries so much sound. */
const PIECE_SECONDS = 0.04;

class Microphone extends AudioWorkletProcessor {
  #resampler;
  #size;
  #heard = [];

  constructor({ processorOptions: { rate } }) {
    super();
    this.#resampler = new Resampler(sampleRate, rate);
    this.#size = PIECE_SECONDS * rate;
  }

  process([[input]]) {
    // Without a channel there is no microphone any more.
    if (input === undefined) return true;
    this.#heard.push(...this.#resampler.push(input));
    if (this.#heard.length >= this.#size) {
      this.port.postMessage(Float32Array.from(this.#heard));
      this.#heard = [];
    }
    return true;
  }
}

registerProcessor("microphone", Microphone);
