/** The conversations that this browser keeps: their texts, not their files. */

import { effect, signal } from "@preact/signals";
import { type Call, Conversation, Turn, conversation } from "./conversation.ts";
import type { MediaKind } from "./files.ts";

const NAME = "sglang-omni-conversations";
/** Browsers keep about five million characters for a page. */
const MAX_CHARACTERS = 3_000_000;
const MAX_TITLE = 60;
const WRITE_MS = 300;

interface StoredTurn {
  role: "user" | "assistant";
  text: string;
  note?: string;
  reasoning?: string;
  files?: { name: string; kind: MediaKind }[];
  calls?: Call[];
}

export interface StoredConversation {
  id: string;
  title: string;
  /** Milliseconds since 1970. */
  changed: number;
  turns: StoredTurn[];
}

/** All conversations, the newest first. */
export const stored = signal<StoredConversation[]>(read());

function read(): StoredConversation[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(NAME) ?? "[]");
    return Array.isArray(found) ? found : [];
  } catch {
    return [];
  }
}

function write(conversations: StoredConversation[]): void {
  let kept = conversations;
  while (kept.length > 1 && JSON.stringify(kept).length > MAX_CHARACTERS) kept = kept.slice(0, -1);
  stored.value = kept;
  if (kept.length > 0) localStorage.setItem(NAME, JSON.stringify(kept));
  else localStorage.removeItem(NAME);
}

/** Keep the conversation on screen from now on. */
export function keepConversations(): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  effect(() => {
    const current = conversation.value;
    const record = toStored(current);
    clearTimeout(timer);
    timer = setTimeout(() => keep(record), WRITE_MS);
  });
}

function keep(record: StoredConversation): void {
  const known = stored.value.find(({ id }) => id === record.id);
  // A message that the server rejected is not a conversation.
  if (record.turns.length === 0) return known && deleteConversation(record.id);
  if (known && JSON.stringify(known.turns) === JSON.stringify(record.turns)) return;
  const title = known?.title || record.title;
  write([{ ...record, title }, ...stored.value.filter(({ id }) => id !== record.id)]);
}

function toStored({ id, turns }: Conversation): StoredConversation {
  // All are read, so that a change of any of them is seen; what still streams is not kept yet.
  const all = turns.value.map((turn) => ({ turn, isBusy: turn.isBusy.value }));
  const kept = all.filter(({ isBusy }) => !isBusy).map(({ turn }) => toStoredTurn(turn));
  const first = kept.find(({ text }) => text)?.text ?? "";
  const line = first.split("\n")[0] ?? "";
  const title = line.length > MAX_TITLE ? `${line.slice(0, MAX_TITLE)}…` : line;
  return { id, title, changed: Date.now(), turns: kept };
}

function toStoredTurn(turn: Turn): StoredTurn {
  const { role, files } = turn;
  const [text, note, reasoning] = [turn.text.value, turn.note.value, turn.reasoning.value];
  const calls = turn.calls.value;
  return {
    role,
    text,
    ...(note && { note }),
    ...(reasoning && { reasoning }),
    ...(files.length > 0 && { files: files.map(({ name, kind }) => ({ name, kind })) }),
    ...(calls.length > 0 && { calls }),
  };
}

/** Show a conversation that was kept. */
export function openConversation({ id, turns }: StoredConversation): void {
  const shown = turns.map((kept) => {
    const files = (kept.files ?? []).map((file) => ({ ...file, url: null }));
    const turn = new Turn(kept.role, kept.text, files);
    turn.reasoning.value = kept.reasoning ?? "";
    turn.calls.value = kept.calls ?? [];
    turn.end(kept.note);
    return turn;
  });
  conversation.value = new Conversation(id, shown);
}

/** Give a conversation another title. */
export function renameConversation(id: string, title: string): void {
  write(stored.value.map((one) => (one.id === id ? { ...one, title } : one)));
}

/** Delete a conversation; the one on screen stays there. */
export function deleteConversation(id: string): void {
  write(stored.value.filter((one) => one.id !== id));
}

/** Delete all conversations. */
export const deleteConversations = (): void => write([]);

/** Return the conversations in which all words occur. */
export function findConversations(query: string): StoredConversation[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  return stored.value.filter(({ title, turns }) => {
    const text = [title, ...turns.map((turn) => turn.text)].join("\n").toLowerCase();
    return words.every((word) => text.includes(word));
  });
}
