/** Timings of one request, as measured by this page. */

export class RequestTimings {
  #now;
  #startedAt;
  #firstTextAt = null;
  #firstAudioAt = null;
  #firstImageAt = null;
  #lastAudioAt = null;
  #audioSeconds = 0;
  #underruns = 0;

  /** Start the timings. `now` returns the time in seconds. */
  constructor(now = () => performance.now() / 1000) {
    this.#now = now;
    this.#startedAt = now();
  }

  /** Record that text arrived. */
  recordText() {
    this.#firstTextAt ??= this.#now();
  }

  /** Record that a finished image arrived. */
  recordImage() {
    this.#firstImageAt ??= this.#now();
  }

  /** Record that `seconds` of audio arrived. */
  recordAudio(seconds) {
    this.#lastAudioAt = this.#now();
    this.#firstAudioAt ??= this.#lastAudioAt;
    this.#audioSeconds += seconds;
  }

  /** Record playback underruns. */
  recordUnderruns(count) {
    this.#underruns += count;
  }

  /** Return the names and values of the figures to show. */
  getFigures() {
    const since = (time) => `${(time - this.#startedAt).toFixed(3)} s`;
    const figures = [];
    if (this.#firstTextAt !== null) figures.push(["First text", since(this.#firstTextAt)]);
    if (this.#firstImageAt !== null) figures.push(["Image", since(this.#firstImageAt)]);
    if (this.#firstAudioAt === null) return figures;
    const generationSeconds = this.#lastAudioAt - this.#startedAt;
    figures.push(["First sound", since(this.#firstAudioAt)]);
    figures.push(["Real-time ratio", (generationSeconds / this.#audioSeconds).toFixed(3)]);
    figures.push(["Speech", `${this.#audioSeconds.toFixed(2)} s`]);
    figures.push(["Gaps", `${this.#underruns}`]);
    return figures;
  }
}
