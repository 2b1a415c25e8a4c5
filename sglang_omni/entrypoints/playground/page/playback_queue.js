/** Samples that wait to be played, without a gap between the pieces that they came in. */

/** What of a silenced sound is still played, more softly with each sample, lest it clicks. */
const FADE_SECONDS = 0.005;
/** After a gap so much must be there before it goes on, or it would stutter. */
const REFILL_SECONDS = 0.2;

export class PlaybackQueue {
  #pieces = [];
  #offset = 0;
  #waiting = 0;
  #ended = true;
  #refilling = false;
  #rate;

  /** Of the sound, in samples a second. */
  constructor(rate) {
    this.#rate = rate;
    /** Samples played, less those that faded out. */
    this.played = 0;
    /** How often sound was due and none was there; whoever reads it may set it to zero. */
    this.gaps = 0;
  }

  /** Whether there is nothing to play, and nothing to come. */
  get drained() {
    return this.#ended && this.#waiting === 0;
  }

  /** More sound, and still more to come. */
  push(samples) {
    if (samples.length === 0) return;
    this.#ended = false;
    this.#pieces.push(samples);
    this.#waiting += samples.length;
  }

  /** No more is to come. */
  end() {
    this.#ended = true;
  }

  /** Fall silent within milliseconds. Returns how many samples were played. */
  silence() {
    const fading = Math.min(Math.round(FADE_SECONDS * this.#rate), this.#waiting);
    const last = new Float32Array(fading);
    const heard = this.played;
    this.#take(last);
    this.#pieces = [last.map((sample, at) => sample * (1 - (at + 1) / fading))];
    this.#offset = 0;
    this.#waiting = fading;
    this.#ended = true;
    this.#refilling = false;
    // What fades is not counted.
    this.played = -fading;
    this.gaps = 0;
    return heard;
  }

  /** Fill the next samples of the output; where there are none, with silence. */
  fill(output) {
    if (this.#refilling) {
      if (!this.#ended && this.#waiting < REFILL_SECONDS * this.#rate) return output.fill(0);
      this.#refilling = false;
    }
    const count = this.#take(output);
    this.played += count;
    if (count < output.length && !this.#ended) {
      this.gaps += 1;
      this.#refilling = true;
    }
    return output.fill(0, count);
  }

  /** Move what is there into the output. Returns how many samples. */
  #take(output) {
    let done = 0;
    while (done < output.length && this.#pieces.length > 0) {
      const piece = this.#pieces[0];
      const part = piece.subarray(this.#offset, this.#offset + output.length - done);
      output.set(part, done);
      done += part.length;
      this.#offset += part.length;
      if (this.#offset === piece.length) {
        this.#pieces.shift();
        this.#offset = 0;
      }
    }
    this.#waiting -= done;
    return done;
  }
}
