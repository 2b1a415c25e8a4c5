/** Records a clip from the microphone, for a voice or for a message. */

import { type Recording, getSeconds, toWav } from "./wav.ts";
import { Microphone } from "./microphone.ts";

/** Enough for a voice network, whose clips are resampled by the server. */
const RATE = 24_000;

export class Recorder {
  readonly #recording: Recording = { rate: RATE, chunks: [] };
  #microphone: Microphone | null = null;

  /** Start to record. `onlevel` receives the seconds and the level from 0 to 1, often. */
  async start(device: string, onlevel: (seconds: number, level: number) => void): Promise<void> {
    this.#microphone = await Microphone.open(RATE, device, (samples) => {
      this.#recording.chunks.push(samples);
      onlevel(getSeconds(this.#recording), getLevel(samples));
    });
  }

  /** Stop, and return a WAV file of the clip. */
  async stop(name: string): Promise<File> {
    await this.#microphone?.close();
    return new File([toWav(this.#recording)], name, { type: "audio/wav" });
  }
}

/** Return a level from 0 (silence) to 1 (loud) of samples. */
export function getLevel(samples: Float32Array): number {
  const power = samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length;
  const decibels = 10 * Math.log10(power + 1e-9);
  return Math.min(Math.max((decibels + 60) / 50, 0), 1);
}
