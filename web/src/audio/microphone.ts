/** Records samples from the microphone. */

import { resolveUrl } from "../server/address.ts";
import { t } from "../text/index.ts";
import { loadWorklet } from "./worklet.ts";

const PROCESSING = { echoCancellation: true, noiseSuppression: true, autoGainControl: true };

export class Microphone {
  readonly #stream: MediaStream;
  readonly #context: AudioContext;
  readonly #port: MessagePort;

  /** Start recording. `onsamples` receives samples from -1 to 1 at `rate` Hz. `device` is the id of
   * a microphone, or empty for the browser's choice. Throws if there is none, or the user denies
   * access. */
  static async open(
    rate: number,
    device: string,
    onsamples: (samples: Float32Array) => void,
  ): Promise<Microphone> {
    const stream = await openStream(device);
    try {
      // Use the device's own rate: not every browser resamples a stream.
      const context = new AudioContext();
      return new Microphone(stream, context, await connect(context, stream, rate, onsamples));
    } catch (error) {
      stopTracks(stream);
      throw error;
    }
  }

  constructor(stream: MediaStream, context: AudioContext, port: MessagePort) {
    this.#stream = stream;
    this.#context = context;
    this.#port = port;
  }

  /** Mute the microphone, or end that. */
  set isMuted(isMuted: boolean) {
    for (const track of this.#stream.getAudioTracks()) track.enabled = !isMuted;
  }

  /** Stop recording: no more samples come from now on. */
  async close(): Promise<void> {
    // The worklet goes on until the context is closed, which takes a while.
    this.#port.onmessage = null;
    stopTracks(this.#stream);
    await this.#context.close();
  }
}

/** Return the microphones. Their names are known once the page may use one of them. */
export async function listMicrophones(): Promise<MediaDeviceInfo[]> {
  const devices = (await navigator.mediaDevices?.enumerateDevices()) ?? [];
  return devices.filter(({ kind, deviceId }) => kind === "audioinput" && deviceId !== "");
}

/** Open the microphone's stream. */
async function openStream(device: string): Promise<MediaStream> {
  if (!navigator.mediaDevices) throw new Error(t().microphoneNeedsHttps);
  const audio = device ? { ...PROCESSING, deviceId: { exact: device } } : PROCESSING;
  try {
    return await navigator.mediaDevices.getUserMedia({ audio });
  } catch (error) {
    throw new Error(t().microphoneError(error as Error));
  }
}

/** Have a context send the stream's samples to `onsamples`; return the port that they come from. */
async function connect(
  context: AudioContext,
  stream: MediaStream,
  rate: number,
  onsamples: (samples: Float32Array) => void,
): Promise<MessagePort> {
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
  return node.port;
}

function stopTracks(stream: MediaStream): void {
  for (const track of stream.getTracks()) track.stop();
}
