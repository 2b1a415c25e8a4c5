/** The conversation by voice, if there is one. */

import { signal } from "@preact/signals";
import type { Texts } from "../text/index.ts";
import type { Turn } from "./conversation.ts";

export type TalkState = keyof Texts["states"];

/** What a user can do while it goes on. */
export interface TalkSession {
  /** End it. */
  stop(): Promise<void>;
  /** Apply a change of the settings. */
  change(): void;
  /** Send a written turn. Throws if it has what a session does not take. */
  sendTurn(turn: Turn): void;
  /** Mute the microphone, or end that. */
  mute(isMuted: boolean): void;
  /** Handle a press of the button: stop the answer and start a turn. */
  press(): void;
  /** Handle the release of the button: commit the turn. */
  release(): void;
}

/** Null unless there is one. */
export const session = signal<TalkSession | null>(null);
export const talkState = signal<TalkState>("connecting");
/** The level of the microphone, or of the answer while it is spoken, from 0 to 1. */
export const level = signal(0);
export const isMuted = signal(false);
