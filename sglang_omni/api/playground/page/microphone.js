/** What the user says, as samples. */

import { address } from "./server.js";

export class Microphone {
  #stream;
  #context;

  /** Listen; `onsound` gets samples from -1 to 1, `rate` of them a second. Throws when there is no
   * microphone, or the user does not allow it. */
  static async open(rate, onsound) {
    if (!navigator.mediaDevices) throw new Error("browsers offer a microphone only over https");
    const wanted = { echoCancellation: true, noiseSuppression: true, autoGainControl: true };
    const stream = await navigator.mediaDevices.getUserMedia({ audio: wanted });
    // At the device's own rate: not every browser connects another one.
    const context = new AudioContext();
    await context.audioWorklet.addModule(address("playground/microphone_worklet.js"));
    const options = { numberOfOutputs: 0, channelCount: 1, channelCountMode: "explicit" };
    const node = new AudioWorkletNode(context, "microphone", {
      ...options,
      processorOptions: { rate },
    });
    node.port.onmessage = ({ data }) => onsound(data);
    context.createMediaStreamSource(stream).connect(node);
    await context.resume();
    return new Microphone(stream, context);
  }

  constructor(stream, context) {
    this.#stream = stream;
    this.#context = context;
  }

  /** Stop listening. */
  async close() {
    this.#stream.getTracks().forEach((track) => track.stop());
    await this.#context.close();
  }
}
