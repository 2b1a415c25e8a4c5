/** Requests to the server that this page came from. */

import { address } from "./address.js";
import { noReply } from "./connection.js";
import { askForKey, credentials, currentKey } from "./key.js";
import { serverSentEvents } from "./server_sent_events.js";

/** An answer that says why there is none: the server's message, and the field at fault, if any. */
export class ServerError extends Error {
  constructor({ message, param = null }, status) {
    super(message);
    this.name = "ServerError";
    this.param = param;
    this.status = status;
  }
}

/** The response to a request. Asks the user for a key where the server does. Throws `ServerError`,
 * or an error that says that no reply came. */
export async function request(path, options = {}) {
  for (;;) {
    const headers = { ...options.headers, ...credentials() };
    const used = currentKey();
    const reply = await replyTo(path, { ...options, headers });
    if (reply.ok) return reply;
    const error = await errorOf(reply);
    const another = reply.status === 401 && currentKey() !== used;
    if (reply.status !== 401 || !(another || (await askForKey(error.message)))) throw error;
  }
}

async function replyTo(path, options) {
  try {
    return await fetch(address(path), options);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw await noReply();
  }
}

async function errorOf(reply) {
  const body = await reply.json().catch(() => null);
  const error = body?.error ?? { message: `The server answered ${reply.status}.` };
  return new ServerError(error, reply.status);
}

/** The object that a route answers with. */
export const get = async (path) => (await request(path)).json();

/** Post an object; the answer is a stream of objects. Resolves to the id of the request and an
 * iterator over the objects. */
export async function stream(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  const options = { method: "POST", headers, body: JSON.stringify(body), signal };
  const reply = await request(path, options);
  return { id: reply.headers.get("X-Request-Id"), events: received(reply.body, signal) };
}

/** The objects in the body of a reply. */
async function* received(body, signal) {
  try {
    yield* serverSentEvents(body);
  } catch (error) {
    // What `fetch` throws when a connection breaks.
    if (!(error instanceof TypeError) || signal.aborted) throw error;
    throw await noReply();
  }
}

let model = null;

/** Ask the server what it serves. Resolves to the model as `/v1/models` describes it. */
export async function askForModel() {
  model = (await get("v1/models")).data[0];
  return model;
}

/** The name of the served model. */
export const servedModel = async () => (model ?? (await askForModel())).id;
