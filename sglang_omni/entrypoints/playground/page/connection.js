/** Polls the server, and shows a banner while it does not answer. */

import { resolveUrl } from "./address.js";
import { find } from "./dom.js";

const POLL_MS = 5000;
/** Poll more often while the user waits for the server. */
const OFFLINE_POLL_MS = 1000;
/** Long enough for a busy server to answer. */
const TIMEOUT_MS = 10_000;

let isOffline = false;
let onreturn = () => {};

/** Return whether the server answers, and update the banner. */
export async function checkServer() {
  const options = { cache: "no-store", signal: AbortSignal.timeout(TIMEOUT_MS) };
  const response = await fetch(resolveUrl("health"), options).catch(() => null);
  const isUp = response?.ok ?? false;
  updateBanner(!isUp);
  return isUp;
}

/** Return the error for a request without a response. */
export async function makeConnectionError() {
  const reason = (await checkServer())
    ? "The connection to the server broke. Try again."
    : "The server does not answer. Try again when it is back.";
  return new Error(reason);
}

/** Poll the server for ever. Calls `callback` whenever it answers again. */
export async function watchServer(callback) {
  onreturn = callback;
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, isOffline ? OFFLINE_POLL_MS : POLL_MS));
    if (!document.hidden) await checkServer();
  }
}

function updateBanner(isNowOffline) {
  if (isNowOffline === isOffline) return;
  isOffline = isNowOffline;
  const banner = find("away");
  banner.hidden = !isOffline;
  // A screen reader announces text only if the element existed before.
  banner.textContent = isOffline ? "The server does not answer. Reconnecting…" : "";
  if (!isOffline) onreturn();
}
