/** Plays speech while it streams. */

import { resolveUrl } from "../server/address.ts";
import type { PlaybackMessage, PlaybackReport } from "./playback_worklet.ts";
import { loadWorklet } from "./worklet.ts";

const players = new Map<number, Player>();
let volume = 1;

/** Set the volume of all speech, from 0 to 1. */
export function setVolume(chosen: number): void {
  volume = chosen;
  for (const player of players.values()) player.setVolume(volume);
}

/** Return the player for audio at `rate` Hz. The first call must come from a user action, because
 * browsers block audio without one. */
export async function getPlayer(rate: number): Promise<Player> {
  const player = players.get(rate) ?? (await Player.open(rate));
  players.set(rate, player);
  player.setVolume(volume);
  await player.resume();
  return player;
}

export class Player {
  readonly rate: number;
  /** Called with the number of underruns when everything was played to its end. */
  ondrained: (underruns: number) => void = () => {};
  /** Called with the seconds that were played since the last stop, often. */
  onprogress: (seconds: number) => void = () => {};
  readonly #context: AudioContext;
  readonly #node: AudioWorkletNode;
  readonly #volume: GainNode;
  /** Callbacks of pending stops, in order. */
  readonly #stopCallbacks: ((played: number) => void)[] = [];
  /** Samples pushed since the last stop, and those of them before the current item. */
  #pushed = 0;
  #itemStart = 0;

  static async open(rate: number): Promise<Player> {
    const context = new AudioContext({ sampleRate: rate });
    await loadWorklet(context, resolveUrl("playground/playback_worklet.js"));
    return new Player(context);
  }

  constructor(context: AudioContext) {
    this.#context = context;
    this.rate = context.sampleRate;
    const options = { numberOfInputs: 0, outputChannelCount: [1] };
    this.#node = new AudioWorkletNode(context, "playback", options);
    this.#volume = context.createGain();
    this.#node.connect(this.#volume).connect(context.destination);
    this.#node.port.onmessage = ({ data }) => this.#handleReport(data);
  }

  #handleReport({ drained, underruns = 0, stopped, played }: PlaybackReport): void {
    if (drained) this.ondrained(underruns);
    else if (stopped !== undefined) this.#stopCallbacks.shift()?.(stopped);
    else if (played !== undefined) this.onprogress(played / this.rate);
  }

  resume(): Promise<void> {
    return this.#context.resume();
  }

  /** Set the volume, from 0 to 1. */
  setVolume(volume: number): void {
    this.#volume.gain.value = volume;
  }

  /** Start a new item: samples pushed from now on belong to it. Returns the seconds before it. */
  startItem(): number {
    this.#itemStart = this.#pushed;
    return this.#itemStart / this.rate;
  }

  /** Play samples from -1 to 1 after those before. */
  push(samples: Float32Array): void {
    this.#pushed += samples.length;
    this.#post({ push: samples });
  }

  /** Mark the item as complete. */
  end(): void {
    this.#post({ end: true });
  }

  /** Stop playback. Resolves to the seconds of the current item that were played. */
  async stop(): Promise<number> {
    const played = await new Promise<number>((resolve) => {
      this.#stopCallbacks.push(resolve);
      this.#post({ stop: true });
    });
    const itemLength = this.#pushed - this.#itemStart;
    const itemPlayed = Math.min(Math.max(played - this.#itemStart, 0), itemLength);
    this.#pushed = 0;
    this.#itemStart = 0;
    return itemPlayed / this.rate;
  }

  #post(message: PlaybackMessage): void {
    this.#node.port.postMessage(message);
  }
}
