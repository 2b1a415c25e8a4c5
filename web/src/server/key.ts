/** The API key that the server may require. It is stored until this tab is closed. */

import { signal } from "@preact/signals";

const NAME = "sglang-omni-key";

/** The question for a key that the dialog shows, if there is one. */
export interface KeyQuestion {
  reason: string;
  answer: (changed: boolean) => void;
}

export const keyQuestion = signal<KeyQuestion | null>(null);

/** Return the key, or null. */
export const getKey = (): string | null => sessionStorage.getItem(NAME);

/** Store a key; null forgets it. */
export function storeKey(key: string | null): void {
  if (key === null) sessionStorage.removeItem(NAME);
  else sessionStorage.setItem(NAME, key);
}

/** Return the authorization header, empty without a key. */
export function getAuthHeaders(): Record<string, string> {
  const key = getKey();
  return key === null ? {} : { Authorization: `Bearer ${key}` };
}

let pending: Promise<boolean> | null = null;

/** Ask the user for a key. Resolves to whether the key has changed. Concurrent calls share one
 * dialog. */
export function askForKey(reason: string): Promise<boolean> {
  pending ??= new Promise<boolean>((resolve) => {
    keyQuestion.value = { reason, answer: resolve };
  }).finally(() => {
    keyQuestion.value = null;
    pending = null;
  });
  return pending;
}
