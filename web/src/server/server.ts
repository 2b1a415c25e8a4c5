/** Requests to the server that this page was loaded from. */

import { t } from "../text/index.ts";
import { resolveUrl } from "./address.ts";
import { makeConnectionError } from "./connection.ts";
import { askForKey, getAuthHeaders, getKey } from "./key.ts";
import { parseServerSentEvents } from "./server_sent_events.ts";

interface ErrorBody {
  message: string;
  param?: string | null;
}

/** An error response: the server's message, and the field at fault if there is one. */
export class ServerError extends Error {
  readonly param: string | null;
  readonly status: number;

  constructor({ message, param = null }: ErrorBody, status: number) {
    super(message);
    this.name = "ServerError";
    this.param = param;
    this.status = status;
  }
}

/** Send a request and return the response. Asks the user for a key if the server requires one.
 * Throws `ServerError`, or an error that says why there is no response. */
export async function request(path: string | URL, options: RequestInit = {}): Promise<Response> {
  for (;;) {
    const headers = { ...(options.headers as Record<string, string>), ...getAuthHeaders() };
    const used = getKey();
    const response = await fetchResponse(path, { ...options, headers });
    if (response.ok) return response;
    const error = await toServerError(response);
    const another = response.status === 401 && getKey() !== used;
    if (response.status !== 401 || !(another || (await askForKey(error.message)))) throw error;
  }
}

async function fetchResponse(path: string | URL, options: RequestInit): Promise<Response> {
  try {
    return await fetch(resolveUrl(String(path)), options);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw await makeConnectionError();
  }
}

async function toServerError(response: Response): Promise<ServerError> {
  const body = (await response.json().catch(() => null)) as { error?: ErrorBody } | null;
  const error = body?.error ?? { message: t().serverStatus(response.status) };
  return new ServerError(error, response.status);
}

/** Return the JSON object of a route. */
export async function get<T>(path: string): Promise<T> {
  return (await request(path)).json() as Promise<T>;
}

/** Post an object, and return the JSON object of the answer. */
export async function post<T>(path: string, body: object, signal: AbortSignal): Promise<T> {
  return (await request(path, makePost(body, signal))).json() as Promise<T>;
}

function makePost(body: object, signal: AbortSignal): RequestInit {
  // The browser says what separates the parts of a form.
  if (body instanceof FormData) return { method: "POST", body, signal };
  const headers = { "Content-Type": "application/json" };
  return { method: "POST", headers, body: JSON.stringify(body), signal };
}

export interface Streamed<T> {
  /** The id of the request. */
  id: string;
  events: AsyncGenerator<T>;
}

/** Post an object or a form to a streaming route. The events are the objects of the stream. */
export async function stream<T>(
  path: string,
  body: object,
  signal: AbortSignal,
): Promise<Streamed<T>> {
  const response = await request(path, makePost(body, signal));
  if (response.body === null) throw await makeConnectionError();
  const events = readEvents<T>(response.body, signal);
  return { id: response.headers.get("X-Request-Id") ?? "", events };
}

/** Yield the objects in the body of a response. */
async function* readEvents<T>(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  signal: AbortSignal,
): AsyncGenerator<T> {
  try {
    yield* parseServerSentEvents<T>(body);
  } catch (error) {
    // `fetch` throws a TypeError when the connection breaks.
    if (!(error instanceof TypeError) || signal.aborted) throw error;
    throw await makeConnectionError();
  }
}
