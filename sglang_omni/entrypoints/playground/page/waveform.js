/** Draws the waveform of audio while it streams. */

/** Length of the audio that each bar represents. */
const BAR_SECONDS = 0.01;

export class Waveform {
  #canvas;
  #peaks = [];
  #peak = 0;
  #count = 0;
  #seconds = 0;
  #isDrawScheduled = false;

  constructor(canvas) {
    this.#canvas = canvas;
    new ResizeObserver(() => this.#draw()).observe(canvas);
  }

  /** Clear the waveform for new audio. */
  clear() {
    this.#peaks = [];
    this.#peak = 0;
    this.#count = 0;
    this.#seconds = 0;
    this.#canvas.ariaLabel = "No sound yet";
    this.#draw();
  }

  /** Add samples from -1 to 1 at `rate` Hz. */
  push(samples, rate) {
    this.#seconds += samples.length / rate;
    for (const sample of samples) {
      this.#peak = Math.max(this.#peak, Math.abs(sample));
      this.#count += 1;
      if (this.#count >= BAR_SECONDS * rate) {
        this.#peaks.push(this.#peak);
        this.#peak = 0;
        this.#count = 0;
      }
    }
    this.#canvas.ariaLabel = `Waveform of ${this.#seconds.toFixed(1)} seconds of sound`;
    if (!this.#isDrawScheduled) requestAnimationFrame(() => this.#draw());
    this.#isDrawScheduled = true;
  }

  /** Draw all of the audio across the whole width. */
  #draw() {
    this.#isDrawScheduled = false;
    const canvas = this.#canvas;
    const { clientWidth, clientHeight } = canvas;
    canvas.width = clientWidth * devicePixelRatio;
    canvas.height = clientHeight * devicePixelRatio;
    const context = canvas.getContext("2d");
    context.fillStyle = getComputedStyle(canvas).color;
    const peaks = this.#peaks;
    for (let x = 0; x < canvas.width; x += 1) {
      const first = Math.floor((x / canvas.width) * peaks.length);
      const last = Math.max(Math.floor(((x + 1) / canvas.width) * peaks.length), first + 1);
      const height = Math.max(0, ...peaks.slice(first, last)) * canvas.height;
      context.fillRect(x, (canvas.height - height) / 2, 1, height);
    }
  }
}
