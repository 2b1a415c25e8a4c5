/** The few things of a browser that modules ask for when they are loaded. */

import { vi } from "vitest";

/** What the page keeps in the browser. */
export const kept = new Map<string, string>();

vi.stubGlobal("localStorage", {
  getItem: (name: string) => kept.get(name) ?? null,
  setItem: (name: string, value: string) => kept.set(name, value),
  removeItem: (name: string) => kept.delete(name),
});
vi.stubGlobal("document", { baseURI: "http://127.0.0.1:8000/", documentElement: {} });
vi.stubGlobal("navigator", { language: "en-GB" });
