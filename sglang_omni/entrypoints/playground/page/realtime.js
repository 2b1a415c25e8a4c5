/** A session of `/v1/realtime`: events in, events out. */

import { address } from "./address.js";
import { noReply, serverAnswers } from "./connection.js";
import { currentKey } from "./key.js";

/** Every sound of a session has this rate, in samples a second. */
export const RATE = 24_000;
const FORMAT = { type: "audio/pcm", rate: RATE };
/** How browsers, which can set no header for a WebSocket, present a key. */
const KEY_PROTOCOL = "openai-insecure-api-key.";

/** Whether the server finds where a turn ends, or the client says so. */
export const turnDetection = (handsFree) => (handsFree ? { type: "server_vad" } : null);

/** What the session shall be. */
export function sessionOf({ voice, speed, instructions, maxTokens, handsFree }) {
  return {
    type: "realtime",
    output_modalities: ["audio"],
    ...(instructions && { instructions }),
    max_output_tokens: maxTokens,
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

/** Why there is no session; browsers do not tell what the server said. */
async function refusal() {
  if (!(await serverAnswers())) return noReply();
  return new Error("The server refused the session: as many as it allows may be open. Try later.");
}

export class RealtimeSession {
  #socket;

  /** Begin a session with a model. `onevent` gets every event with who sent it, "server" or
   * "client"; `onclose` is called with the reason when it is over. Throws where the server does not
   * take it. */
  static async open(model, onevent, onclose) {
    const url = address(`v1/realtime?model=${encodeURIComponent(model)}`);
    url.protocol = url.protocol.replace("http", "ws");
    const key = currentKey();
    const protocols = key === null ? [] : [KEY_PROTOCOL + key];
    const socket = new WebSocket(url, ["realtime", ...protocols]);
    await new Promise((resolve, reject) => {
      socket.onopen = resolve;
      socket.onclose = () => refusal().then(reject);
    });
    return new RealtimeSession(socket, onevent, onclose);
  }

  constructor(socket, onevent, onclose) {
    this.#socket = socket;
    this.onevent = onevent;
    socket.onmessage = ({ data }) => onevent(JSON.parse(data), "server");
    socket.onclose = ({ reason }) => onclose(reason);
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
