/** Example messages that the model answers well, shown while the conversation is empty. */

import { createButton, find } from "./dom.js";

/** Create a button for each prompt, which sends it. */
export function setStarters(prompts) {
  find("chat-starter-list").replaceChildren(...prompts.map(createStarter));
  updateStarterVisibility();
}

/** Show the prompts if the conversation is empty, else hide them. */
export function updateStarterVisibility() {
  const empty = find("chat-log").children.length === 0;
  const any = find("chat-starter-list").children.length > 0;
  find("chat-starters").hidden = !(empty && any);
}

function createStarter(prompt) {
  return createButton(prompt, () => {
    find("chat-text").value = prompt;
    find("chat-form").requestSubmit();
  });
}
