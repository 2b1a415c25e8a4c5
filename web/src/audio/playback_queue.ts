/** A queue of samples to play without a gap between chunks. */

/** Length of the fade-out after a stop, which avoids a click. */
const FADE_SECONDS = 0.005;
/** Audio to buffer after an underrun before playback continues; with less it would stutter. It
 * doubles with every underrun of an audio: a slow server gets few long gaps, not many short ones. */
const REFILL_SECONDS = 0.2;
const MAX_REFILL_SECONDS = 1.6;

export class PlaybackQueue {
  #chunks: Float32Array[] = [];
  #offset = 0;
  #numQueued = 0;
  #ended = true;
  #refilling = false;
  #refillSeconds = REFILL_SECONDS;
  readonly #rate: number;
  /** Number of samples played, without those of a fade-out. */
  played = 0;
  /** Number of underruns; the reader may reset it. */
  underruns = 0;

  /** Create a queue for audio at `rate` Hz. */
  constructor(rate: number) {
    this.#rate = rate;
  }

  /** Whether the audio has ended and everything was played. */
  get drained(): boolean {
    return this.#ended && this.#numQueued === 0;
  }

  /** Add samples of an audio that continues. */
  push(samples: Float32Array): void {
    if (samples.length === 0) return;
    this.#ended = false;
    this.#chunks.push(samples);
    this.#numQueued += samples.length;
  }

  /** Mark the audio as complete. */
  end(): void {
    this.#ended = true;
    this.#refillSeconds = REFILL_SECONDS;
  }

  /** Stop within milliseconds. Returns the number of samples played. */
  stop(): number {
    const fadeLength = Math.min(Math.round(FADE_SECONDS * this.#rate), this.#numQueued);
    const fade = new Float32Array(fadeLength);
    const played = this.played;
    this.#dequeue(fade);
    this.#chunks = [fade.map((sample, index) => sample * (1 - (index + 1) / fadeLength))];
    this.#offset = 0;
    this.#numQueued = fadeLength;
    this.#refilling = false;
    this.end();
    // The fade-out does not count as played.
    this.played = -fadeLength;
    this.underruns = 0;
    return played;
  }

  /** Fill the output with the next samples, and with silence if there are too few. */
  fill(output: Float32Array): Float32Array {
    if (this.#refilling) {
      if (!this.#ended && this.#numQueued < this.#refillSeconds * this.#rate) return output.fill(0);
      this.#refilling = false;
    }
    const count = this.#dequeue(output);
    this.played += count;
    if (count < output.length && !this.#ended) {
      if (this.underruns > 0) {
        this.#refillSeconds = Math.min(2 * this.#refillSeconds, MAX_REFILL_SECONDS);
      }
      this.underruns += 1;
      this.#refilling = true;
    }
    return output.fill(0, count);
  }

  /** Move queued samples into the output. Returns their number. */
  #dequeue(output: Float32Array): number {
    let done = 0;
    for (let chunk = this.#chunks[0]; chunk && done < output.length; chunk = this.#chunks[0]) {
      const part = chunk.subarray(this.#offset, this.#offset + output.length - done);
      output.set(part, done);
      done += part.length;
      this.#offset += part.length;
      if (this.#offset === chunk.length) {
        this.#chunks.shift();
        this.#offset = 0;
      }
    }
    this.#numQueued -= done;
    return done;
  }
}
