/** Plays speech as it streams. */

import { address } from "./address.js";
import { loadWorklet } from "./worklet.js";

const players = new Map();

/** The player for sound of this many samples a second. Must first be called when the user does
 * something: browsers let no page make noise unasked. */
export async function playerAt(rate) {
  if (!players.has(rate)) players.set(rate, await Player.open(rate));
  const player = players.get(rate);
  await player.resume();
  return player;
}

class Player {
  #context;
  #node;
  /** Who waits for it to fall silent, in the order of asking. */
  #silencing = [];
  /** Samples since it was last silent, of these those before the present sound. */
  #pushed = 0;
  #begun = 0;

  static async open(rate) {
    const context = new AudioContext({ sampleRate: rate });
    await loadWorklet(context, address("playground/playback_worklet.js"));
    return new Player(context);
  }

  constructor(context) {
    this.#context = context;
    this.rate = context.sampleRate;
    /** Called when everything was played to its end, with the number of gaps in it. */
    this.ondrained = () => {};
    const options = { numberOfInputs: 0, outputChannelCount: [1] };
    this.#node = new AudioWorkletNode(context, "playback", options);
    this.#node.connect(context.destination);
    this.#node.port.onmessage = ({ data }) => {
      if (data.drained) this.ondrained(data.gaps);
      else this.#silencing.shift()(data.silenced);
    };
  }

  resume() {
    return this.#context.resume();
  }

  /** What is pushed from now on is another sound. */
  begin() {
    this.#begun = this.#pushed;
  }

  /** More of the sound: samples from -1 to 1. */
  push(samples) {
    this.#pushed += samples.length;
    this.#node.port.postMessage({ push: samples });
  }

  /** The sound is complete. */
  end() {
    this.#node.port.postMessage({ end: true });
  }

  /** Fall silent. Resolves to the seconds that were played of the present sound. */
  async silence() {
    const played = await new Promise((resolve) => {
      this.#silencing.push(resolve);
      this.#node.port.postMessage({ silence: true });
    });
    const heard = Math.min(Math.max(played - this.#begun, 0), this.#pushed - this.#begun);
    this.#pushed = 0;
    this.#begun = 0;
    return heard / this.rate;
  }
}
