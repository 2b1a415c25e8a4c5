/** Sends the microphone's samples to the page, resampled to the requested rate. */

import { Resampler } from "./resampler.ts";

/** Length of the audio in one message to the page. */
const CHUNK_SECONDS = 0.04;

class Microphone extends AudioWorkletProcessor {
  readonly #resampler: Resampler;
  readonly #chunkSamples: number;
  #buffer: number[] = [];

  constructor({ processorOptions: { rate } }: { processorOptions: { rate: number } }) {
    super();
    this.#resampler = new Resampler(sampleRate, rate);
    this.#chunkSamples = CHUNK_SECONDS * rate;
  }

  override process([channels]: Float32Array[][]): boolean {
    const input = channels?.[0];
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
