/** Plays speech while it streams. */

import { resolveUrl } from "./address.js";
import { loadWorklet } from "./worklet.js";

const players = new Map();

/** Return the player for audio at `rate` Hz. The first call must come from a user action, because
 * browsers block audio without one. */
export async function getPlayer(rate) {
  if (!players.has(rate)) players.set(rate, await Player.open(rate));
  const player = players.get(rate);
  await player.resume();
  return player;
}

class Player {
  #context;
  #node;
  /** Callbacks of pending stops, in order. */
  #stopCallbacks = [];
  /** Samples pushed since the last stop, and those of them before the current item. */
  #pushed = 0;
  #itemStart = 0;

  static async open(rate) {
    const context = new AudioContext({ sampleRate: rate });
    await loadWorklet(context, resolveUrl("playground/playback_worklet.js"));
    return new Player(context);
  }

  constructor(context) {
    this.#context = context;
    this.rate = context.sampleRate;
    /** Called with the number of underruns when everything was played to its end. */
    this.ondrained = () => {};
    const options = { numberOfInputs: 0, outputChannelCount: [1] };
    this.#node = new AudioWorkletNode(context, "playback", options);
    this.#node.connect(context.destination);
    this.#node.port.onmessage = ({ data }) => {
      if (data.drained) this.ondrained(data.underruns);
      else this.#stopCallbacks.shift()(data.stopped);
    };
  }

  resume() {
    return this.#context.resume();
  }

  /** Start a new item: samples pushed from now on belong to it. */
  startItem() {
    this.#itemStart = this.#pushed;
  }

  /** Play samples from -1 to 1 after those before. */
  push(samples) {
    this.#pushed += samples.length;
    this.#node.port.postMessage({ push: samples });
  }

  /** Mark the item as complete. */
  end() {
    this.#node.port.postMessage({ end: true });
  }

  /** Stop playback. Resolves to the seconds of the current item that were played. */
  async stop() {
    const played = await new Promise((resolve) => {
      this.#stopCallbacks.push(resolve);
      this.#node.port.postMessage({ stop: true });
    });
    const itemLength = this.#pushed - this.#itemStart;
    const itemPlayed = Math.min(Math.max(played - this.#itemStart, 0), itemLength);
    this.#pushed = 0;
    this.#itemStart = 0;
    return itemPlayed / this.rate;
  }
}
