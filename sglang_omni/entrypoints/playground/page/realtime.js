/** A client of `/v1/realtime`. */

import { resolveUrl } from "./address.js";
import { checkServer, makeConnectionError } from "./connection.js";
import { getKey } from "./key.js";

/** Sample rate of all audio of a session, in Hz. */
export const SAMPLE_RATE = 24_000;
const FORMAT = { type: "audio/pcm", rate: SAMPLE_RATE };
/** Prefix of the subprotocol that carries a key: browsers cannot set headers of a WebSocket. */
const KEY_PROTOCOL = "openai-insecure-api-key.";

/** Return the turn detection: by the server if hands-free, else by the client. */
export const getTurnDetection = (handsFree) => (handsFree ? { type: "server_vad" } : null);

/** Build the settings of a session. */
export function buildSession({ voice, speed, instructions, maxTokens, handsFree }) {
  return {
    type: "realtime",
    output_modalities: ["audio"],
    ...(instructions && { instructions }),
    max_output_tokens: maxTokens,
    audio: {
      input: {
        format: FORMAT,
        transcription: {},
        turn_detection: getTurnDetection(handsFree),
      },
      output: { format: FORMAT, voice, speed },
    },
  };
}

/** Return the error for a rejected session; browsers hide the server's response. */
async function makeRejectionError() {
  if (!(await checkServer())) return makeConnectionError();
  return new Error(
    "The server rejected the session. The maximum number of sessions may be open; try again later.",
  );
}

export class RealtimeSession {
  #socket;

  /** Open a session. `onevent` receives every event and its sender, "server" or "client"; `onclose`
   * receives the reason when the session ends. Throws if the server rejects it. */
  static async open(model, onevent, onclose) {
    const url = resolveUrl(`v1/realtime?model=${encodeURIComponent(model)}`);
    url.protocol = url.protocol.replace("http", "ws");
    const key = getKey();
    const protocols = key === null ? [] : [KEY_PROTOCOL + key];
    const socket = new WebSocket(url, ["realtime", ...protocols]);
    await new Promise((resolve, reject) => {
      socket.onopen = resolve;
      socket.onclose = () => makeRejectionError().then(reject);
    });
    return new RealtimeSession(socket, onevent, onclose);
  }

  constructor(socket, onevent, onclose) {
    this.#socket = socket;
    this.onevent = onevent;
    socket.onmessage = ({ data }) => onevent(JSON.parse(data), "server");
    socket.onclose = ({ reason }) => onclose(reason);
  }

  /** Send an event unless the session has ended. */
  send(event) {
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    this.#socket.send(JSON.stringify(event));
    this.onevent(event, "client");
  }

  close() {
    this.#socket.close();
  }
}
