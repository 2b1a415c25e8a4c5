/** Reads a text aloud, in a voice and a style. */

import { signal } from "@preact/signals";
import { decodePcm } from "../audio/pcm.ts";
import { getPlayer } from "../audio/player.ts";
import { type Recording, getSeconds } from "../audio/wav.ts";
import { withFieldLabel } from "../server/field_names.ts";
import { post, stream } from "../server/server.ts";
import { getModelId } from "../state/model.ts";
import { clearError, showError } from "../state/notices.ts";
import { startRequest } from "../state/requests.ts";
import * as settings from "../state/settings.ts";
import { t } from "../text/index.ts";
import { SAMPLE_RATE, stopAnswer } from "./chat.ts";

/** A key of `readStates`; empty before the first text. */
export const readState = signal("");
export const isReading = signal(false);
/** The speech of the last text, and how much of it was played, in seconds. */
export const readRecording = signal<Recording | null>(null);
export const readSeconds = signal({ played: 0, total: 0 });
/** The body of the last request. */
export const readBody = signal<object | null>(null);

let abortController = new AbortController();

export interface ReadOptions {
  text: string;
  /** Fields of the style that are filled in. */
  style: Record<string, string>;
  speed: number;
}

/** Read a text aloud, in place of what is played. */
export async function readAloud(options: ReadOptions): Promise<void> {
  clearError("read");
  abortController.abort();
  abortController = new AbortController();
  const { signal } = abortController;
  isReading.value = true;
  try {
    await stopAnswer();
    await read(options, signal);
  } catch (error) {
    readState.value = signal.aborted ? "stopped" : "failed";
    if (!signal.aborted) showError("read", error);
  } finally {
    isReading.value = false;
  }
}

async function read({ text, style, speed }: ReadOptions, signal: AbortSignal): Promise<void> {
  const player = await getPlayer(SAMPLE_RATE);
  await player.stop();
  const body = {
    model: await getModelId(),
    input: text,
    voice: settings.voice.value,
    ...(Object.keys(style).length > 0 && { instructions: style }),
    speed,
    response_format: "pcm",
    sample_rate: SAMPLE_RATE,
    stream_format: "sse",
  };
  readBody.value = body;
  const recording: Recording = { rate: player.rate, chunks: [] };
  readRecording.value = null;
  readSeconds.value = { played: 0, total: 0 };
  const request = startRequest();
  readState.value = "waiting";
  const labels: Record<string, string> = { input: t().text, speed: t().playbackSpeed };
  const { id, events } = await stream<{ type: string; audio: string }>(
    "v1/audio/speech",
    body,
    signal,
  ).catch((error) => {
    throw withFieldLabel(error, (field) => labels[field]);
  });
  player.ondrained = (underruns) => {
    request.recordUnderruns(underruns);
    readState.value = "done";
    readSeconds.value = { played: getSeconds(recording), total: getSeconds(recording) };
  };
  player.onprogress = (played) => {
    if (played > 0) readSeconds.value = { ...readSeconds.value, played };
  };
  try {
    for await (const event of events) {
      signal.throwIfAborted();
      if (event.type !== "speech.audio.delta") continue;
      readState.value = "speaking";
      const samples = decodePcm(event.audio);
      recording.chunks.push(samples);
      request.recordAudio(samples, player.rate);
      player.push(samples);
      readSeconds.value = { ...readSeconds.value, total: getSeconds(recording) };
    }
    readRecording.value = recording;
  } finally {
    player.end();
  }
  request.end(id).catch((error) => showError("read", error));
}

/** Stop reading. */
export async function stopReading(): Promise<void> {
  abortController.abort();
  await (await getPlayer(SAMPLE_RATE)).stop();
  readState.value = "stopped";
}

/** What will be spoken for a text, as `/v1/audio/normalize` has it. */
export interface SpokenPreview {
  text: string;
  readings?: { written: string; class: string; spoken: string }[];
  unspoken?: string[];
}

/** Return what will be spoken for a text. */
export const previewSpeech = (input: string, signal: AbortSignal): Promise<SpokenPreview> =>
  post("v1/audio/normalize", { input }, signal);

/** Let a voice say a sentence. */
export async function hearVoice(name: string): Promise<void> {
  settings.voice.value = name;
  await readAloud({ text: t().sample, style: {}, speed: 1 });
}
