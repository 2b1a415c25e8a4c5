/** Requests to the server that this page was loaded from. */

import { resolveUrl } from "./address.js";
import { makeConnectionError } from "./connection.js";
import { askForKey, getAuthHeaders, getKey } from "./key.js";
import { parseServerSentEvents } from "./server_sent_events.js";

/** An error response: the server's message, and the field at fault if there is one. */
export class ServerError extends Error {
  constructor({ message, param = null }, status) {
    super(message);
    this.name = "ServerError";
    this.param = param;
    this.status = status;
  }
}

/** Send a request and return the response. Asks the user for a key if the server requires one.
 * Throws `ServerError`, or an error that says why there is no response. */
export async function request(path, options = {}) {
  for (;;) {
    const headers = { ...options.headers, ...getAuthHeaders() };
    const used = getKey();
    const response = await fetchResponse(path, { ...options, headers });
    if (response.ok) return response;
    const error = await toServerError(response);
    const another = response.status === 401 && getKey() !== used;
    if (response.status !== 401 || !(another || (await askForKey(error.message)))) throw error;
  }
}

async function fetchResponse(path, options) {
  try {
    return await fetch(resolveUrl(path), options);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw await makeConnectionError();
  }
}

async function toServerError(response) {
  const body = await response.json().catch(() => null);
  const error = body?.error ?? { message: `The server returned status ${response.status}.` };
  return new ServerError(error, response.status);
}

/** Return the JSON object of a route. */
export const get = async (path) => (await request(path)).json();

/** Post an object, and return the JSON object of the answer. */
export const post = async (path, body, signal) =>
  (await request(path, makePost(body, signal))).json();

function makePost(body, signal) {
  // The browser says what separates the parts of a form.
  if (body instanceof FormData) return { method: "POST", body, signal };
  const headers = { "Content-Type": "application/json" };
  return { method: "POST", headers, body: JSON.stringify(body), signal };
}

/** Post an object or a form to a streaming route. Resolves to the id of the request and an iterator over the
 * objects of the stream. */
export async function stream(path, body, signal) {
  const response = await request(path, makePost(body, signal));
  return { id: response.headers.get("X-Request-Id"), events: readEvents(response.body, signal) };
}

/** Yield the objects in the body of a response. */
async function* readEvents(body, signal) {
  try {
    yield* parseServerSentEvents(body);
  } catch (error) {
    // `fetch` throws a TypeError when the connection breaks.
    if (!(error instanceof TypeError) || signal.aborted) throw error;
    throw await makeConnectionError();
  }
}

let model = null;

/** Load the served model as `/v1/models` describes it. */
export async function loadModel() {
  model = (await get("v1/models")).data[0];
  return model;
}

/** Return the id of the served model. */
export const getModelId = async () => (model ?? (await loadModel())).id;
