/** Plays the samples that the page sends to its port, on the browser's audio thread. */

import { PlaybackQueue } from "./playback_queue.ts";

/** Time between two reports of what was played, in seconds. */
const REPORT_SECONDS = 0.05;

/** A message of the page; each has one of the fields. */
export interface PlaybackMessage {
  push?: Float32Array;
  end?: true;
  stop?: true;
}

/** A message to the page: everything was played, a stop was done, or how far playback is. Positions
 * are in samples since the last stop. */
export interface PlaybackReport {
  drained?: true;
  underruns?: number;
  stopped?: number;
  played?: number;
}

class Playback extends AudioWorkletProcessor {
  readonly #queue = new PlaybackQueue(sampleRate);
  #drained = true;
  #reported = 0;

  constructor() {
    super();
    this.port.onmessage = ({ data }) => this.#handleMessage(data);
  }

  #handleMessage({ push, end, stop }: PlaybackMessage): void {
    if (push) {
      this.#queue.push(push);
      this.#drained = false;
    }
    if (end) this.#queue.end();
    if (stop) {
      this.#report({ stopped: this.#queue.stop() });
      this.#drained = true;
    }
  }

  override process(_inputs: Float32Array[][], [channels]: Float32Array[][]): boolean {
    const output = channels?.[0];
    if (output) this.#queue.fill(output);
    const { played } = this.#queue;
    if (Math.abs(played - this.#reported) > REPORT_SECONDS * sampleRate) {
      this.#reported = played;
      this.#report({ played });
    }
    if (this.#queue.drained && !this.#drained) {
      this.#drained = true;
      this.#report({ drained: true, underruns: this.#queue.underruns });
      this.#queue.underruns = 0;
    }
    return true;
  }

  #report(report: PlaybackReport): void {
    this.port.postMessage(report);
  }
}

registerProcessor("playback", Playback);
