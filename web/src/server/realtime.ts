/** A client of `/v1/realtime`. */

import { t } from "../text/index.ts";
import { resolveUrl } from "./address.ts";
import { checkServer, makeConnectionError } from "./connection.ts";
import { getKey } from "./key.ts";

/** Sample rate of all audio of a session, in Hz. */
export const SAMPLE_RATE = 24_000;
const FORMAT = { type: "audio/pcm", rate: SAMPLE_RATE };
/** Prefix of the subprotocol that carries a key: browsers cannot set headers of a WebSocket. */
const KEY_PROTOCOL = "openai-insecure-api-key.";

export type Sender = "client" | "server";

/** An event of either side. Fields are those of OpenAI's realtime API. */
// The protocol has some sixty kinds of events, and each reader knows its own.
export type RealtimeEvent = { type: string } & Record<string, any>;

export interface SessionOptions {
  voice: string;
  speed: number;
  instructions: string | null;
  maxTokens: number;
  isHandsFree: boolean;
}

/** Return the turn detection: by the server if hands-free, else by the client. */
export const getTurnDetection = (isHandsFree: boolean) =>
  isHandsFree ? { type: "server_vad" } : null;

/** Build the settings of a session. */
export function buildSession(options: SessionOptions) {
  const { voice, speed, instructions, maxTokens, isHandsFree } = options;
  return {
    type: "realtime",
    output_modalities: ["audio"],
    ...(instructions && { instructions }),
    max_output_tokens: maxTokens,
    audio: {
      input: {
        format: FORMAT,
        transcription: {},
        turn_detection: getTurnDetection(isHandsFree),
      },
      output: { format: FORMAT, voice, speed },
    },
  };
}

/** Return the error for a rejected session; browsers hide the server's response. */
async function makeRejectionError(): Promise<Error> {
  if (!(await checkServer())) return makeConnectionError();
  return new Error(t().sessionRejected);
}

export class RealtimeSession {
  readonly #socket: WebSocket;
  readonly #onevent: (event: RealtimeEvent, sender: Sender) => void;

  /** Open a session. `onevent` receives every event and its sender; `onclose` receives the reason
   * when the session ends. Throws if the server rejects it. */
  static async open(
    model: string,
    onevent: (event: RealtimeEvent, sender: Sender) => void,
    onclose: (reason: string) => void,
  ): Promise<RealtimeSession> {
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

  constructor(
    socket: WebSocket,
    onevent: (event: RealtimeEvent, sender: Sender) => void,
    onclose: (reason: string) => void,
  ) {
    this.#socket = socket;
    this.#onevent = onevent;
    socket.onmessage = ({ data }) => onevent(JSON.parse(data), "server");
    socket.onclose = ({ reason }) => onclose(reason);
  }

  /** Send an event unless the session has ended. */
  send(event: RealtimeEvent): void {
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    this.#socket.send(JSON.stringify(event));
    this.#onevent(event, "client");
  }

  close(): void {
    this.#socket.close();
  }
}
