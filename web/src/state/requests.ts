/** The last request: its figures, its sound and its stages. */

import { signal } from "@preact/signals";
import { ServerError, get } from "../server/server.ts";
import { type Figure, RequestTimings } from "./measured.ts";

/** Interval between polls: the server ends a request shortly after its last byte. */
const POLL_MS = 100;
const MAX_POLLS = 5;
/** Length of the audio that each bar of the waveform represents. */
const BAR_SECONDS = 0.01;
/** Above this ratio of generation to speech the speech has gaps. */
const REAL_TIME = 1;

/** A stage of a request, in seconds since the request arrived. */
export interface Stage {
  name: string;
  began_s: number;
  first_s: number | null;
  ended_s: number | null;
  error: string | null;
}

/** The stages of a request, as `/v1/requests/{id}` has them. */
export interface Timeline {
  seconds: number;
  ended: boolean;
  stages: Stage[];
}

/** The loudest samples of an audio, in equal steps of time. */
export interface Waveform {
  peaks: number[];
  seconds: number;
}

const NO_SOUND: Waveform = { peaks: [], seconds: 0 };

/** The request whose details are shown. */
export const lastRequest = signal<LastRequest | null>(null);

export class LastRequest {
  readonly figures = signal<[Figure, string][]>([]);
  readonly timeline = signal<Timeline | null>(null);
  readonly waveform = signal<Waveform>(NO_SOUND);
  /** Whether the speech has gaps because the server is slower than real time. */
  readonly isSlow = signal(false);
  readonly #timings: RequestTimings;
  #peak = 0;
  #count = 0;

  constructor(isAfterSpeech: boolean) {
    this.#timings = new RequestTimings(isAfterSpeech);
  }

  /** Record that text arrived. */
  recordText(): void {
    this.#timings.recordText();
    this.#show();
  }

  /** Record audio that arrived: samples from -1 to 1 at `rate` Hz. */
  recordAudio(samples: Float32Array, rate: number): void {
    this.#timings.recordAudio(samples.length / rate);
    const { peaks, seconds } = this.waveform.value;
    const added = this.#getPeaks(samples, BAR_SECONDS * rate);
    this.waveform.value = {
      peaks: [...peaks, ...added],
      seconds: seconds + samples.length / rate,
    };
    this.#show();
  }

  /** Record that a finished image arrived. */
  recordImage(): void {
    this.#timings.recordImage();
    this.#show();
  }

  /** Record playback underruns. */
  recordUnderruns(count: number): void {
    this.#timings.recordUnderruns(count);
    this.#show();
  }

  /** The request has ended: show its stages, unless the server has dropped them. */
  async end(id: string): Promise<void> {
    for (let tries = 0; tries < MAX_POLLS; tries += 1) {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      const timeline = await get<Timeline>(`v1/requests/${id}`).catch(nullIfNotFound);
      if (timeline === null) return;
      this.timeline.value = timeline;
      if (timeline.ended) return;
    }
  }

  #show(): void {
    this.figures.value = this.#timings.getFigures();
    const { ratio, underruns } = this.#timings;
    this.isSlow.value = ratio !== null && ratio > REAL_TIME && underruns > 0;
  }

  #getPeaks(samples: Float32Array, barSamples: number): number[] {
    const peaks: number[] = [];
    for (const sample of samples) {
      this.#peak = Math.max(this.#peak, Math.abs(sample));
      this.#count += 1;
      if (this.#count < barSamples) continue;
      peaks.push(this.#peak);
      this.#peak = 0;
      this.#count = 0;
    }
    return peaks;
  }
}

/** Start to show a new request in place of the last one. `isAfterSpeech` if it follows what the user
 * said. */
export function startRequest(isAfterSpeech = false): LastRequest {
  lastRequest.value = new LastRequest(isAfterSpeech);
  return lastRequest.value;
}

function nullIfNotFound(error: unknown): null {
  if (error instanceof ServerError && error.status === 404) return null;
  throw error;
}
