/** What the served model can do, as `/v1/models` tells: the page offers nothing else. */

import { find } from "./dom.js";
import { offerStarters } from "./starters.js";

/** Of a server that does not tell. */
const UNTOLD = { speech_languages: [], speech_instructions: true, starter_prompts: [] };

/** Offer what a model can do. */
export function offer({ capabilities }) {
  const known = { ...UNTOLD, ...capabilities };
  offerStarters(known.starter_prompts);
  showLanguages(known.speech_languages);
  // What is disabled is not sent either.
  find("read-style").disabled = !known.speech_instructions;
  find("read-style").hidden = !known.speech_instructions;
}

function showLanguages(codes) {
  const names = new Intl.DisplayNames(["en"], { type: "language" });
  const list = new Intl.ListFormat("en").format(codes.map((code) => names.of(code)));
  const hint = find("read-languages");
  hint.textContent = `The model speaks ${list}. Text in another language is refused.`;
  hint.hidden = codes.length === 0;
}
