/** Requests to the server that this page came from. */

import { askForKey, credentials, currentKey } from "./key.js";
import { serverSentEvents } from "./server_sent_events.js";

/** An answer that says why there is none; `message` is the server's. */
export class ServerError extends Error {
  constructor(message, status) {
    super(message);
    this.name = "ServerError";
    this.status = status;
  }
}

/** The address of a route, wherever the page is mounted. */
export const address = (path) => new URL(path, document.baseURI);

/** The response to a request. Asks the user for a key where the server does. Throws `ServerError`.
 */
export async function request(path, options = {}) {
  for (;;) {
    const headers = { ...options.headers, ...credentials() };
    const used = currentKey();
    const reply = await fetch(address(path), { ...options, headers });
    if (reply.ok) return reply;
    const error = await errorOf(reply);
    const another = reply.status === 401 && currentKey() !== used;
    if (reply.status !== 401 || !(another || (await askForKey(error.message)))) throw error;
  }
}

async function errorOf(reply) {
  const body = await reply.json().catch(() => null);
  const message = body?.error?.message ?? `the server answered ${reply.status}`;
  return new ServerError(message, reply.status);
}

/** The object that a route answers with. */
export const get = async (path) => (await request(path)).json();

/** Post an object; the answer is a stream of objects. Resolves to the id of the request and an
 * iterator over the objects. */
export async function stream(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  const options = { method: "POST", headers, body: JSON.stringify(body), signal };
  const reply = await request(path, options);
  return { id: reply.headers.get("X-Request-Id"), events: serverSentEvents(reply.body) };
}

let model = null;

/** The name of the served model. */
export async function servedModel() {
  model ??= (await get("v1/models")).data[0].id;
  return model;
}
