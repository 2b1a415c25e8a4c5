/** The turns of the conversation on screen. A turn changes while it streams. */

import { type Signal, computed, signal } from "@preact/signals";
import type { Recording } from "../audio/wav.ts";
import { type MediaKind, createPreviewUrl } from "./files.ts";
import { LastRequest } from "./requests.ts";

/** A file of a message. A stored conversation has its name alone. */
export interface AttachedFile {
  name: string;
  kind: MediaKind;
  /** Null if it was not kept. */
  url: string | null;
}

/** A call of a function that the model wants. */
export interface Call {
  id: string;
  name: string;
  arguments: string;
  result: string | null;
}

export class Turn {
  readonly role: "user" | "assistant";
  readonly text: Signal<string>;
  readonly files: AttachedFile[];
  readonly isBusy = signal(true);
  readonly note = signal("");
  readonly reasoning = signal("");
  readonly calls = signal<Call[]>([]);
  /** An object URL of the drawn image or its preview, and whether it is finished. */
  readonly image = signal<{ url: string; isFinished: boolean } | null>(null);
  /** The characters that were heard so far; null if playback does not follow the text. */
  readonly heard = signal<number | null>(null);
  /** What the server wants back of an answer: its images. */
  images: unknown = undefined;
  /** What was said, for playing again. */
  recording: Recording | null = null;
  /** The speech as one file, made when it is first played again. */
  readonly replayUrl = signal<string | null>(null);
  request: LastRequest | null = null;
  /** The body of the request, to show it as code. */
  body: object | null = null;
  /** The content parts of a message as they are sent. */
  parts: object[] | null = null;
  readonly key: number;
  static #count = 0;

  constructor(role: "user" | "assistant", text = "", files: AttachedFile[] = []) {
    this.role = role;
    this.text = signal(text);
    this.files = files;
    Turn.#count += 1;
    this.key = Turn.#count;
  }

  /** Record speech that arrived: samples from -1 to 1 at `rate` Hz. Returns its seconds. */
  recordAudio(samples: Float32Array, rate: number): number {
    this.recording ??= { rate, chunks: [] };
    this.recording.chunks.push(samples);
    this.request?.recordAudio(samples, rate);
    return samples.length / rate;
  }

  /** Mark the turn as complete. */
  end(note = ""): void {
    this.note.value = note;
    this.isBusy.value = false;
  }

  /** Show an image in place of the one before it. */
  showImage(url: string, isFinished: boolean): void {
    if (this.image.value) URL.revokeObjectURL(this.image.value.url);
    this.image.value = { url, isFinished };
  }

  /** Release the files that the browser holds for this turn. */
  release(): void {
    const urls = [...this.files.map(({ url }) => url), this.image.value?.url, this.replayUrl.value];
    for (const url of urls) if (url) URL.revokeObjectURL(url);
  }
}

export class Conversation {
  readonly id: string;
  readonly turns: Signal<Turn[]>;

  constructor(id: string = createId(), turns: Turn[] = []) {
    this.id = id;
    this.turns = signal(turns);
  }

  add(turn: Turn): Turn {
    this.turns.value = [...this.turns.value, turn];
    return turn;
  }

  /** Remove a turn and those after it. */
  removeFrom(turn: Turn): void {
    const at = this.turns.value.indexOf(turn);
    if (at < 0) return;
    for (const removed of this.turns.value.slice(at)) removed.release();
    this.turns.value = this.turns.value.slice(0, at);
  }
}

/** Return an id that no other conversation has. `randomUUID` is there over https alone. */
function createId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export const conversation = signal(new Conversation());
/** Whether an answer streams or is played. */
export const isAnswering = computed(() =>
  conversation.value.turns.value.some(
    ({ role, isBusy, heard }) => (role === "assistant" && isBusy.value) || heard.value !== null,
  ),
);

/** No text is followed by playback any more. */
export function endCaptions(): void {
  for (const turn of conversation.value.turns.value) turn.heard.value = null;
}

export const isEmpty = computed(() => conversation.value.turns.value.length === 0);

/** Return a file as a turn shows it. */
export const toAttachedFile = (file: File, kind: MediaKind): AttachedFile => ({
  name: file.name,
  kind,
  url: createPreviewUrl(file),
});
