/** What the user says, as samples. */

import { address } from "./address.js";
import { loadWorklet } from "./worklet.js";

const WANTED = { echoCancellation: true, noiseSuppression: true, autoGainControl: true };

/** What to do where a browser gives no microphone, by the name of its error. */
const ADVICE = {
  NotAllowedError:
    "This page may not use the microphone. Allow it in the browser's settings for this site " +
    "(the icon beside the address) and in those of the system, then press Start.",
  NotFoundError: "There is no microphone. Connect one, then press Start.",
  NotReadableError:
    "The microphone cannot be opened: another program may use it. Close that, then press Start.",
};

export class Microphone {
  #stream;
  #context;

  /** Listen; `onsound` gets samples from -1 to 1, `rate` of them a second. Throws when there is no
   * microphone, or the user does not allow it. */
  static async open(rate, onsound) {
    const stream = await recorded();
    try {
      return new Microphone(stream, await listening(stream, rate, onsound));
    } catch (error) {
      release(stream);
      throw error;
    }
  }

  constructor(stream, context) {
    this.#stream = stream;
    this.#context = context;
  }

  /** Stop listening. */
  async close() {
    release(this.#stream);
    await this.#context.close();
  }
}

/** What the microphone records. */
async function recorded() {
  if (!navigator.mediaDevices) {
    throw new Error("Browsers offer a microphone only over https, or on the server's own machine.");
  }
  try {
    return await navigator.mediaDevices.getUserMedia({ audio: WANTED });
  } catch (error) {
    throw new Error(ADVICE[error.name] ?? `The microphone cannot be opened: ${error.message}`);
  }
}

/** An audio context that hands a stream on. */
async function listening(stream, rate, onsound) {
  // At the device's own rate: not every browser connects another one.
  const context = new AudioContext();
  await loadWorklet(context, address("playground/microphone_worklet.js"));
  const node = new AudioWorkletNode(context, "microphone", {
    numberOfOutputs: 0,
    channelCount: 1,
    channelCountMode: "explicit",
    processorOptions: { rate },
  });
  node.port.onmessage = ({ data }) => onsound(data);
  context.createMediaStreamSource(stream).connect(node);
  await context.resume();
  return context;
}

function release(stream) {
  stream.getTracks().forEach((track) => track.stop());
}
