/** Timings of one request, as measured by this page. */

export type Figure =
  "firstText" | "firstSound" | "sinceSpeech" | "image" | "ratio" | "speech" | "gaps";

export class RequestTimings {
  readonly #now: () => number;
  readonly #startedAt: number;
  readonly #isAfterSpeech: boolean;
  #firstTextAt: number | null = null;
  #firstAudioAt: number | null = null;
  #firstImageAt: number | null = null;
  #lastAudioAt = 0;
  #audioSeconds = 0;
  #underruns = 0;

  /** Start the timings, at the end of the user's speech or of what was written. `now` returns the
   * time in seconds. */
  constructor(isAfterSpeech = false, now = () => performance.now() / 1000) {
    this.#now = now;
    this.#startedAt = now();
    this.#isAfterSpeech = isAfterSpeech;
  }

  /** Record that text arrived. */
  recordText(): void {
    this.#firstTextAt ??= this.#now();
  }

  /** Record that a finished image arrived. */
  recordImage(): void {
    this.#firstImageAt ??= this.#now();
  }

  /** Record that `seconds` of audio arrived. */
  recordAudio(seconds: number): void {
    this.#lastAudioAt = this.#now();
    this.#firstAudioAt ??= this.#lastAudioAt;
    this.#audioSeconds += seconds;
  }

  /** Record playback underruns. */
  recordUnderruns(count: number): void {
    this.#underruns += count;
  }

  /** The seconds of generation for a second of sound; null without sound. */
  get ratio(): number | null {
    if (this.#firstAudioAt === null) return null;
    return (this.#lastAudioAt - this.#startedAt) / this.#audioSeconds;
  }

  /** The number of playback underruns. */
  get underruns(): number {
    return this.#underruns;
  }

  /** Return the figures to show and their values. */
  getFigures(): [Figure, string][] {
    const since = (time: number) => `${(time - this.#startedAt).toFixed(3)} s`;
    const figures: [Figure, string][] = [];
    if (this.#firstTextAt !== null) figures.push(["firstText", since(this.#firstTextAt)]);
    if (this.#firstImageAt !== null) figures.push(["image", since(this.#firstImageAt)]);
    if (this.#firstAudioAt === null || this.ratio === null) return figures;
    figures.push([this.#isAfterSpeech ? "sinceSpeech" : "firstSound", since(this.#firstAudioAt)]);
    figures.push(["ratio", this.ratio.toFixed(3)]);
    figures.push(["speech", `${this.#audioSeconds.toFixed(2)} s`]);
    figures.push(["gaps", `${this.#underruns}`]);
    return figures;
  }
}
