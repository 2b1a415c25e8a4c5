/** The turns of a conversation. A screen reader announces each turn when it is complete. */

import { createElement } from "./dom.js";

/** Append a turn with the heading `who` to a log. */
export function addTurn(log, who, ...media) {
  const text = createElement("p");
  const heading = createElement("h2", {}, who);
  const className = who === "You" ? "user" : "answer";
  const turn = createElement("article", { className, ariaBusy: "true" }, heading, ...media, text);
  log.append(turn);
  const follow = () => log.scrollTo({ top: log.scrollHeight });
  follow();
  return {
    /** Append text. */
    appendText(addition) {
      text.append(addition);
      follow();
    },
    /** Replace the text. */
    setText(replacement) {
      text.textContent = replacement;
      follow();
    },
    /** Show an image behind the text, in place of the one before it. */
    showImage(url, alt) {
      const known = turn.querySelector("img.drawn");
      const image = known ?? createElement("img", { className: "drawn" });
      if (known) URL.revokeObjectURL(known.src);
      Object.assign(image, { src: url, alt, onload: follow });
      if (!known) turn.append(image);
    },
    /** Mark the turn as complete. */
    end(note = "") {
      if (note) turn.append(createElement("p", { className: "hint" }, note));
      turn.ariaBusy = "false";
      follow();
    },
    remove() {
      turn.remove();
    },
  };
}
