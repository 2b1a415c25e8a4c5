/** Records samples from the microphone. */

import { resolveUrl } from "./address.js";
import { loadWorklet } from "./worklet.js";

const CONSTRAINTS = { echoCancellation: true, noiseSuppression: true, autoGainControl: true };

/** What the user can do if the microphone cannot be opened, by the name of the browser's error. */
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

  /** Start recording. `onsamples` receives samples from -1 to 1 at `rate` Hz. Throws if there is no
   * microphone, or the user denies access. */
  static async open(rate, onsamples) {
    const stream = await openStream();
    try {
      return new Microphone(stream, await createContext(stream, rate, onsamples));
    } catch (error) {
      stopTracks(stream);
      throw error;
    }
  }

  constructor(stream, context) {
    this.#stream = stream;
    this.#context = context;
  }

  /** Stop recording. */
  async close() {
    stopTracks(this.#stream);
    await this.#context.close();
  }
}

/** Open the microphone's stream. */
async function openStream() {
  if (!navigator.mediaDevices) {
    throw new Error("Browsers offer a microphone only over https, or on the server's own machine.");
  }
  try {
    return await navigator.mediaDevices.getUserMedia({ audio: CONSTRAINTS });
  } catch (error) {
    throw new Error(ADVICE[error.name] ?? `The microphone cannot be opened: ${error.message}`);
  }
}

/** Create an audio context that sends the stream's samples to `onsamples`. */
async function createContext(stream, rate, onsamples) {
  // Use the device's own rate: not every browser resamples a stream.
  const context = new AudioContext();
  await loadWorklet(context, resolveUrl("playground/microphone_worklet.js"));
  const node = new AudioWorkletNode(context, "microphone", {
    numberOfOutputs: 0,
    channelCount: 1,
    channelCountMode: "explicit",
    processorOptions: { rate },
  });
  node.port.onmessage = ({ data }) => onsamples(data);
  context.createMediaStreamSource(stream).connect(node);
  await context.resume();
  return context;
}

function stopTracks(stream) {
  stream.getTracks().forEach((track) => track.stop());
}
