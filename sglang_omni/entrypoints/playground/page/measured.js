/** What the user waited for: times of one request, as this page saw them. */

export class Measured {
  #now;
  #began;
  #firstText = null;
  #firstSound = null;
  #lastSound = null;
  #sound = 0;
  #gaps = 0;

  /** The request leaves now. `now` tells the time in seconds. */
  constructor(now = () => performance.now() / 1000) {
    this.#now = now;
    this.#began = now();
  }

  /** Text came. */
  text() {
    this.#firstText ??= this.#now();
  }

  /** So many seconds of sound came. */
  sound(seconds) {
    this.#lastSound = this.#now();
    this.#firstSound ??= this.#lastSound;
    this.#sound += seconds;
  }

  /** The player had nothing to play though there was more to come. */
  gap(count) {
    this.#gaps += count;
  }

  /** Names and values to show, of what there was. */
  figures() {
    const since = (moment) => `${(moment - this.#began).toFixed(3)} s`;
    const found = [];
    if (this.#firstText !== null) found.push(["TTFT", since(this.#firstText)]);
    if (this.#firstSound === null) return found;
    const making = this.#lastSound - this.#began;
    found.push(["TTFA", since(this.#firstSound)]);
    found.push(["RTF", (making / this.#sound).toFixed(3)]);
    found.push(["Speech", `${this.#sound.toFixed(2)} s`]);
    found.push(["Gaps", `${this.#gaps}`]);
    return found;
  }
}
