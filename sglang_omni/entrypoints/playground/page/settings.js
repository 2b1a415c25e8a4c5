/** The settings of every answer: voice, maximum length and instructions. */

import { createElement, find, readNumber } from "./dom.js";
import { get } from "./server.js";

/** Return the selected voice. */
export const getVoice = () => find("voice").value;

/** Return the maximum tokens of an answer. Throws if the field is invalid. */
export const getMaxTokens = () => readNumber("max-tokens", "Max tokens");

/** Return the system instructions; null if there are none. */
export const getInstructions = () => find("instructions").value.trim() || null;

/** Load the server's voices and fill the selection. Returns the server's response. */
export async function loadVoices() {
  const response = await get("v1/audio/voices");
  const stored = response.uploaded_voices.map((voice) => voice.name);
  const presets = response.voices.filter((name) => !stored.includes(name));
  const select = find("voice");
  const selected = select.value || response.default_voice;
  select.replaceChildren(...createGroup("Presets", presets), ...createGroup("Your voices", stored));
  select.value = response.voices.includes(selected) ? selected : response.default_voice;
  return response;
}

function createGroup(label, names) {
  if (names.length === 0) return [];
  const options = names.map((name) => createElement("option", { value: name }, name));
  return [createElement("optgroup", { label }, ...options)];
}
