/** Errors of each view, shown beside its controls. */

import { type Signal, signal } from "@preact/signals";

export type Place = "page" | "conversation" | "read" | "draw" | "voices";

/** The message of the last error of each place; empty if there is none. */
export const notices: Record<Place, Signal<string>> = {
  page: signal(""),
  conversation: signal(""),
  read: signal(""),
  draw: signal(""),
  voices: signal(""),
};

/** Show an error. */
export function showError(place: Place, error: unknown): void {
  notices[place].value = error instanceof Error ? error.message : String(error);
}

/** Hide the last error. */
export function clearError(place: Place): void {
  notices[place].value = "";
}
