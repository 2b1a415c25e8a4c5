/** Polls the server, and tells the page while it does not answer. */

import { signal } from "@preact/signals";
import { t } from "../text/index.ts";
import { resolveUrl } from "./address.ts";

const POLL_MS = 5000;
/** Poll more often while the user waits for the server. */
const OFFLINE_POLL_MS = 1000;
/** Long enough for a busy server to answer. */
const TIMEOUT_MS = 10_000;

/** Whether the server did not answer the last time it was asked. */
export const isOffline = signal(false);
let onreturn: () => unknown = () => {};

/** Return whether the server answers. */
export async function checkServer(): Promise<boolean> {
  const options: RequestInit = { cache: "no-store", signal: AbortSignal.timeout(TIMEOUT_MS) };
  const response = await fetch(resolveUrl("health"), options).catch(() => null);
  const isUp = response?.ok ?? false;
  const isBack = isUp && isOffline.value;
  isOffline.value = !isUp;
  if (isBack) onreturn();
  return isUp;
}

/** Return the error for a request without a response. */
export async function makeConnectionError(): Promise<Error> {
  return new Error((await checkServer()) ? t().connectionBroke : t().serverAway);
}

/** Poll the server for ever. Calls `callback` whenever it answers again. */
export async function watchServer(callback: () => unknown): Promise<never> {
  onreturn = callback;
  for (;;) {
    const wait = isOffline.value ? OFFLINE_POLL_MS : POLL_MS;
    await new Promise((resolve) => setTimeout(resolve, wait));
    if (!document.hidden) await checkServer();
  }
}
