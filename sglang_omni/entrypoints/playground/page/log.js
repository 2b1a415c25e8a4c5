/** Turns of a conversation, one below the other. A screen reader reads each when it is complete. */

import { element } from "./dom.js";

/** Append a turn of `who` (its heading) to a log. */
export function addTurn(log, who, ...media) {
  const text = element("p");
  const heading = element("h2", {}, who);
  const className = who === "You" ? "user" : "answer";
  const turn = element("article", { className, ariaBusy: "true" }, heading, ...media, text);
  log.append(turn);
  const follow = () => log.scrollTo({ top: log.scrollHeight });
  follow();
  return {
    /** More of its text. */
    write(more) {
      text.append(more);
      follow();
    },
    /** Its text, whatever it was before. */
    say(whole) {
      text.textContent = whole;
      follow();
    },
    /** Nothing is to come. */
    end(note = "") {
      if (note) turn.append(element("p", { className: "hint" }, note));
      turn.ariaBusy = "false";
      follow();
    },
    remove() {
      turn.remove();
    },
  };
}
