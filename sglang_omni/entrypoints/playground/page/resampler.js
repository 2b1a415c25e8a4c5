/** Another sampling rate for a stream of samples, by windowed sines. */

/** Zero crossings of the filter on each side, at the lower of the two rates. */
const REACH = 16;
/** Where the filter begins to cut, as part of what the lower rate can hold. */
const EDGE = 0.94;

const greatestDivisor = (a, b) => (b === 0 ? a : greatestDivisor(b, a % b));

export class Resampler {
  #up;
  #down;
  #reach;
  #filters;
  /** Samples not used up yet; before the first ones there was silence. */
  #held;
  /** Where the next sample out lies, from the first one held, in parts of `#up`. */
  #next;

  /** From one rate to another, in whole samples a second. */
  constructor(from, to) {
    const shared = greatestDivisor(from, to);
    this.#up = to / shared;
    this.#down = from / shared;
    const cutoff = EDGE * Math.min(1, to / from);
    this.#reach = Math.ceil(REACH / cutoff);
    this.#filters = Array.from({ length: this.#up }, (_, phase) => this.#filter(phase, cutoff));
    this.#held = new Float32Array(this.#reach);
    this.#next = this.#reach * this.#up;
  }

  /** The samples that follow from these. */
  push(samples) {
    const held = new Float32Array(this.#held.length + samples.length);
    held.set(this.#held);
    held.set(samples, this.#held.length);
    const made = [];
    while (Math.floor(this.#next / this.#up) + this.#reach < held.length) {
      made.push(this.#at(held, this.#next));
      this.#next += this.#down;
    }
    const used = Math.max(Math.floor(this.#next / this.#up) - this.#reach, 0);
    this.#held = held.slice(used);
    this.#next -= used * this.#up;
    return Float32Array.from(made);
  }

  #at(held, place) {
    const filter = this.#filters[place % this.#up];
    const first = Math.floor(place / this.#up) - this.#reach;
    let sum = 0;
    for (let at = 0; at < filter.length; at += 1) sum += filter[at] * held[first + at];
    return sum;
  }

  /** Weights of the samples around a place that lies `phase` parts behind one of them. */
  #filter(phase, cutoff) {
    const weights = Float64Array.from({ length: 2 * this.#reach + 1 }, (_, at) => {
      const distance = at - this.#reach - phase / this.#up;
      const turn = Math.PI * cutoff * distance;
      const sine = distance === 0 ? 1 : Math.sin(turn) / turn;
      return sine * (0.5 + 0.5 * Math.cos((Math.PI * distance) / (this.#reach + 1)));
    });
    const sum = weights.reduce((total, weight) => total + weight, 0);
    return weights.map((weight) => weight / sum);
  }
}
