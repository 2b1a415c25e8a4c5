/** What holds for every answer: who speaks, how long at most, and what it is told beforehand. */

import { checkedNumber, element, find } from "./dom.js";
import { get } from "./server.js";

/** The voice that is chosen. */
export const chosenVoice = () => find("voice").value;

/** How many tokens an answer may have. Throws where the field holds no such number. */
export const maxTokens = () => checkedNumber("max-tokens", "Max tokens");

/** What the model is told before a conversation; null for nothing. */
export const instructions = () => find("instructions").value.trim() || null;

/** Ask the server for its voices and offer them. Returns what it said. */
export async function offerVoices() {
  const known = await get("v1/audio/voices");
  const stored = known.uploaded_voices.map((voice) => voice.name);
  const presets = known.voices.filter((name) => !stored.includes(name));
  const select = find("voice");
  const chosen = select.value || known.default_voice;
  select.replaceChildren(...group("Presets", presets), ...group("Your voices", stored));
  select.value = known.voices.includes(chosen) ? chosen : known.default_voice;
  return known;
}

function group(label, names) {
  if (names.length === 0) return [];
  const options = names.map((name) => element("option", { value: name }, name));
  return [element("optgroup", { label }, ...options)];
}
