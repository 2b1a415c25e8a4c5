/** The events of the last session by voice, one a line; repeated events are counted in one line. */

import { type Signal, signal } from "@preact/signals";
import type { RealtimeEvent, Sender } from "../server/realtime.ts";

const MAX_LINES = 500;
const MAX_CHARACTERS = 300;
const ARROWS = { client: "→", server: "←" };

export interface EventLine {
  key: number;
  label: string;
  text: string;
  count: Signal<number>;
}

export const eventLines = signal<EventLine[]>([]);
let startedAt = 0;
let numLines = 0;

/** Clear the log for a new session. */
export function clearEvents(): void {
  eventLines.value = [];
  startedAt = performance.now();
}

/** Add an event of the "client" or the "server". */
export function logEvent(event: RealtimeEvent, sender: Sender): void {
  const label = `${ARROWS[sender]} ${event.type}`;
  const lines = eventLines.value;
  const last = lines.at(-1);
  if (last?.label === label && isRepeatable(event)) {
    last.count.value += 1;
    return;
  }
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(2);
  const details = isRepeatable(event) ? "" : ` ${formatDetails(event)}`;
  numLines += 1;
  const line = { key: numLines, label, text: `${seconds} ${label}${details}`, count: signal(1) };
  eventLines.value = [...lines, line].slice(-MAX_LINES);
}

const isRepeatable = ({ type }: RealtimeEvent): boolean =>
  type.endsWith(".delta") || type.endsWith("_buffer.append");

function formatDetails({ type: _, event_id: __, ...rest }: RealtimeEvent): string {
  const text = JSON.stringify(rest);
  return text.length > MAX_CHARACTERS ? `${text.slice(0, MAX_CHARACTERS)}…` : text;
}
