/** Resamples a stream of samples with a windowed-sinc filter. */

/** Zero crossings of the filter on each side, at the lower of the two rates. */
const ZERO_CROSSINGS = 16;
/** Cutoff frequency as a fraction of the lower rate's Nyquist frequency. */
const CUTOFF = 0.94;

const greatestCommonDivisor = (a: number, b: number): number =>
  b === 0 ? a : greatestCommonDivisor(b, a % b);

export class Resampler {
  readonly #up: number;
  readonly #down: number;
  readonly #reach: number;
  readonly #filters: Float64Array[];
  /** Samples that are still needed. The first ones are preceded by silence. */
  #buffer: Float32Array;
  /** Position of the next output sample from the first one in the buffer, in units of 1 / `#up`. */
  #nextPosition: number;

  /** Create a resampler between two integer rates in Hz. */
  constructor(from: number, to: number) {
    const divisor = greatestCommonDivisor(from, to);
    this.#up = to / divisor;
    this.#down = from / divisor;
    const cutoff = CUTOFF * Math.min(1, to / from);
    this.#reach = Math.ceil(ZERO_CROSSINGS / cutoff);
    this.#filters = Array.from({ length: this.#up }, (_, phase) => this.#filter(phase, cutoff));
    this.#buffer = new Float32Array(this.#reach);
    this.#nextPosition = this.#reach * this.#up;
  }

  /** Add samples and return the output that is complete. */
  push(samples: Float32Array): Float32Array {
    const buffer = new Float32Array(this.#buffer.length + samples.length);
    buffer.set(this.#buffer);
    buffer.set(samples, this.#buffer.length);
    const output: number[] = [];
    while (Math.floor(this.#nextPosition / this.#up) + this.#reach < buffer.length) {
      output.push(this.#at(buffer, this.#nextPosition));
      this.#nextPosition += this.#down;
    }
    const used = Math.max(Math.floor(this.#nextPosition / this.#up) - this.#reach, 0);
    this.#buffer = buffer.slice(used);
    this.#nextPosition -= used * this.#up;
    return Float32Array.from(output);
  }

  #at(buffer: Float32Array, position: number): number {
    const filter = this.#filters[position % this.#up] as Float64Array;
    const first = Math.floor(position / this.#up) - this.#reach;
    let sum = 0;
    for (let tap = 0; tap < filter.length; tap += 1) {
      sum += (filter[tap] as number) * (buffer[first + tap] as number);
    }
    return sum;
  }

  /** Return the filter's taps for an output sample `phase` units after an input sample. */
  #filter(phase: number, cutoff: number): Float64Array {
    const weights = Float64Array.from({ length: 2 * this.#reach + 1 }, (_, tap) => {
      const distance = tap - this.#reach - phase / this.#up;
      const angle = Math.PI * cutoff * distance;
      const sinc = distance === 0 ? 1 : Math.sin(angle) / angle;
      return sinc * (0.5 + 0.5 * Math.cos((Math.PI * distance) / (this.#reach + 1)));
    });
    const sum = weights.reduce((total, weight) => total + weight, 0);
    return weights.map((weight) => weight / sum);
  }
}
