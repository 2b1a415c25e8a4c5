/** A session of `/v1/realtime`: events in, events out. */

import { currentKey } from "./key.js";
import { address, get } from "./server.js";

/** Every sound of a session has this rate, in samples a second. */
export const RATE = 24_000;
const FORMAT = { type: "audio/pcm", rate: RATE };
/** How browsers, which can set no header for a WebSocket, present a key. */
const KEY_PROTOCOL = "openai-insecure-api-key.";

/** Whether the server finds where a turn ends, or the client says so. */
export const turnDetection = (handsFree) => (handsFree ? { type: "server_vad" } : null);

/** What the session shall be. */
export function sessionOf({ voice, speed, instructions, mostTokens, handsFree }) {
  return {
    type: "realtime",
    output_modalities: ["audio"],
    ...(instructions && { instructions }),
    max_output_tokens: mostTokens,
    audio: {
      input: {
        format: FORMAT,
        transcription: {},
        turn_detection: turnDetection(handsFree),
      },
      output: { format: FORMAT, voice, speed },
    },
  };
}

export class RealtimeSession {
  #socket;

  /** Begin a session. `onevent` gets every event with who sent it, "server" or "client"; `onclose`
   * is called when it is over. Throws where the server does not take it. */
  static async open(onevent, onclose) {
    // Also asks for a key where one is needed: a WebSocket could not say that it was refused.
    const model = (await get("v1/models")).data[0].id;
    const url = address(`v1/realtime?model=${encodeURIComponent(model)}`);
    url.protocol = url.protocol.replace("http", "ws");
    const key = currentKey();
    const protocols = key === null ? [] : [KEY_PROTOCOL + key];
    const socket = new WebSocket(url, ["realtime", ...protocols]);
    await new Promise((resolve, reject) => {
      socket.onopen = resolve;
      socket.onclose = () => reject(new Error("the server refused the session; it may be full"));
    });
    return new RealtimeSession(socket, onevent, onclose);
  }

  constructor(socket, onevent, onclose) {
    this.#socket = socket;
    this.onevent = onevent;
    socket.onmessage = ({ data }) => onevent(JSON.parse(data), "server");
    socket.onclose = onclose;
  }

  /** Send an event, unless the session is over. */
  send(event) {
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    this.#socket.send(JSON.stringify(event));
    this.onevent(event, "client");
  }

  close() {
    this.#socket.close();
  }
}
