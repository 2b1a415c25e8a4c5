/** First messages that the model answers well, offered while the conversation is empty. */

import { button, find } from "./dom.js";

/** Offer these messages; a button sends its own. */
export function offerStarters(prompts) {
  find("chat-starter-list").replaceChildren(...prompts.map(starter));
  showStarters();
}

/** Show them where the conversation is empty, and only there. */
export function showStarters() {
  const empty = find("chat-log").children.length === 0;
  const any = find("chat-starter-list").children.length > 0;
  find("chat-starters").hidden = !(empty && any);
}

function starter(prompt) {
  return button(prompt, () => {
    find("chat-text").value = prompt;
    find("chat-form").requestSubmit();
  });
}
