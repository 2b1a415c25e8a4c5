/** The user's settings. Numbers that may be empty are texts; the server chooses what is empty. */

import { t } from "../text/index.ts";
import { storedSignal } from "./stored.ts";

export const voice = storedSignal("voice", "");
export const isSpoken = storedSignal("spoken", true);
export const isDrawn = storedSignal("drawn", false);
export const maxTokens = storedSignal("max-tokens", "1024");
export const instructions = storedSignal("instructions", "");
export const temperature = storedSignal("temperature", "");
export const topP = storedSignal("top-p", "");
export const topK = storedSignal("top-k", "");
export const isThinking = storedSignal("thinking", false);
export const tools = storedSignal("tools", "");
export const isPushToTalk = storedSignal("push-to-talk", false);
export const speed = storedSignal("speed", "1");
export const volume = storedSignal("volume", 1);
export const microphone = storedSignal("microphone", "");

/** Return the system instructions; null if there are none. */
export const getInstructions = (): string | null => instructions.value.trim() || null;

/** Return the maximum tokens of an answer. Throws if the value is no number. */
export const getMaxTokens = (): number => toNumber(maxTokens.value, t().maxTokens, 1, 1e6);

/** Return the speed of speech. Throws if the value is no number within the server's limits. */
export const getSpeed = (): number => toNumber(speed.value, t().speed, 0.25, 1.5);

/** Return the fields of a chat request that follow from the settings. Throws if one is invalid. */
export function getChatFields(): Record<string, unknown> {
  return {
    max_tokens: getMaxTokens(),
    ...getOptional("temperature", temperature.value, t().temperature, 0, 2),
    ...getOptional("top_p", topP.value, t().topP, 0, 1),
    ...getOptional("top_k", topK.value, t().topK, -1, 1e6),
    ...(isThinking.value ? { chat_template_kwargs: { enable_thinking: true } } : {}),
    ...(tools.value.trim() ? { tools: parseTools(tools.value) } : {}),
  };
}

function getOptional(field: string, text: string, label: string, least: number, most: number) {
  return text.trim() ? { [field]: toNumber(text, label, least, most) } : {};
}

function toNumber(text: string, label: string, least: number, most: number): number {
  const value = Number(text);
  if (text.trim() === "" || !(value >= least && value <= most)) {
    throw new Error(t().invalid(label, `${least} – ${most}`));
  }
  return value;
}

function parseTools(text: string): unknown[] {
  try {
    const parsed: unknown = JSON.parse(text);
    if (Array.isArray(parsed)) return parsed;
  } catch {
    // Told below.
  }
  throw new Error(t().toolsInvalid);
}
