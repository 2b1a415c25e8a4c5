/** Signals whose values this browser keeps. */

import { type Signal, effect, signal } from "@preact/signals";

const PREFIX = "sglang-omni-";

/** Return a signal with the value that was kept under `name`, or with `initial`. */
export function storedSignal(name: string, initial: string): Signal<string>;
export function storedSignal(name: string, initial: number): Signal<number>;
export function storedSignal(name: string, initial: boolean): Signal<boolean>;
export function storedSignal<T>(name: string, initial: T): Signal<T> {
  const created = signal(read(name, initial));
  effect(() => {
    if (created.value === initial) localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, JSON.stringify(created.value));
  });
  return created;
}

function read<T>(name: string, initial: T): T {
  try {
    const value = JSON.parse(localStorage.getItem(PREFIX + name) ?? "null");
    return typeof value === typeof initial ? value : initial;
  } catch {
    return initial;
  }
}
