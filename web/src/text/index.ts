/** The page's words in the language of the user. */

import { effect, signal } from "@preact/signals";
import { type Texts, en } from "./en.ts";
import { zh } from "./zh.ts";

const NAME = "sglang-omni-language";
const TABLES: Record<Language, Texts> = { en, zh };

export type { Texts } from "./en.ts";
export type Language = "en" | "zh";
/** The languages and their own names. */
export const LANGUAGES: [Language, string][] = [
  ["en", "English"],
  ["zh", "中文"],
];

function getFirstLanguage(): Language {
  const stored = localStorage.getItem(NAME);
  if (stored === "en" || stored === "zh") return stored;
  return navigator.language.startsWith("zh") ? "zh" : "en";
}

/** The chosen language. */
export const language = signal<Language>(getFirstLanguage());

/** Choose a language, for this browser. */
export function setLanguage(chosen: Language): void {
  localStorage.setItem(NAME, chosen);
  language.value = chosen;
}

/** Return the words. Whatever reads them in a component follows the language. */
export const t = (): Texts => TABLES[language.value];

effect(() => {
  document.documentElement.lang = language.value;
});
