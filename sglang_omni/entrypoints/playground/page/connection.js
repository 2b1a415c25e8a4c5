/** Whether the server answers, and the banner that says when it does not. */

import { address } from "./address.js";
import { find } from "./dom.js";

const PERIOD_MS = 5000;
/** While it is away, the user waits for it. */
const AWAY_PERIOD_MS = 1000;
/** A busy server may be slow to answer; that is not yet being away. */
const TIMEOUT_MS = 10_000;

let away = false;
let onreturn = () => {};

/** Find out whether the server answers now; the banner follows. */
export async function serverAnswers() {
  const options = { cache: "no-store", signal: AbortSignal.timeout(TIMEOUT_MS) };
  const reply = await fetch(address("health"), options).catch(() => null);
  const answers = reply?.ok ?? false;
  show(!answers);
  return answers;
}

/** The error that says why a request got no reply. */
export async function noReply() {
  const reason = (await serverAnswers())
    ? "The connection to the server broke. Try again."
    : "The server does not answer. Try again when it is back.";
  return new Error(reason);
}

/** Keep looking whether the server answers. Calls `callback` whenever it is back. */
export async function watchServer(callback) {
  onreturn = callback;
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, away ? AWAY_PERIOD_MS : PERIOD_MS));
    if (!document.hidden) await serverAnswers();
  }
}

function show(isAway) {
  if (isAway === away) return;
  away = isAway;
  const banner = find("away");
  banner.hidden = !away;
  // A screen reader reads what is put into a banner that it knows already.
  banner.textContent = away ? "The server does not answer. Reconnecting…" : "";
  if (!away) onreturn();
}
