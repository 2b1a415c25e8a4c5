/** Adapts the page to the model's capabilities, as `/v1/models` describes them. */

import { find } from "./dom.js";
import { setStarters } from "./starters.js";
import { showTab } from "./tabs.js";

/** Capabilities of a server that does not list its own. */
const DEFAULT_CAPABILITIES = {
  speech_languages: [],
  speech_instructions: true,
  starter_prompts: [],
  image_output: false,
};

/** Show the controls that a model supports. */
export function showCapabilities({ capabilities }) {
  const supported = { ...DEFAULT_CAPABILITIES, ...capabilities };
  setStarters(supported.starter_prompts);
  showLanguages(supported.speech_languages);
  // Disabled fields are not sent.
  find("read-style").disabled = !supported.speech_instructions;
  find("read-style").hidden = !supported.speech_instructions;
  showTab(find("tab-draw"), supported.image_output);
  find("chat-image-option").hidden = !supported.image_output;
  if (!supported.image_output) find("chat-image").checked = false;
}

function showLanguages(codes) {
  const names = new Intl.DisplayNames(["en"], { type: "language" });
  const list = new Intl.ListFormat("en").format(codes.map((code) => names.of(code)));
  const hint = find("read-languages");
  hint.textContent = `The model speaks ${list}. Text in another language is rejected.`;
  hint.hidden = codes.length === 0;
}
