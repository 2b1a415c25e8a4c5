/** Written messages with files, answered in text, speech and images. */

import { signal } from "@preact/signals";
import { type Player, getPlayer } from "../audio/player.ts";
import { decodePcm } from "../audio/pcm.ts";
import { withFieldLabel } from "../server/field_names.ts";
import { createUrlOfDataUri } from "../server/image_url.ts";
import { stream } from "../server/server.ts";
import { Captions, endOfWord } from "../state/captions.ts";
import {
  type Call,
  type Conversation,
  Turn,
  conversation,
  endCaptions,
  toAttachedFile,
} from "../state/conversation.ts";
import { attachFiles, draftFiles, getMediaKind, takeFiles, toContentPart } from "../state/files.ts";
import { getModelId } from "../state/model.ts";
import { clearError, showError } from "../state/notices.ts";
import { startRequest } from "../state/requests.ts";
import * as settings from "../state/settings.ts";
import { session } from "../state/talk.ts";
import { t } from "../text/index.ts";

/** How often an image is shown before it is finished. */
const PREVIEWS = 3;
/** The sample rate to request for speech, in Hz. */
export const SAMPLE_RATE = 44_100;

/** The message being written. */
export const draft = signal("");
/** Whether a message is on its way: one that is rejected returns to the text field. */
export const isSending = signal(false);

/** Stops the last answer. The reason is a key of the notes. */
let abortController = new AbortController();
/** Resolves when the last answer has ended. */
let answerDone: Promise<void> = Promise.resolve();
let player: Player | null = null;

interface Delta {
  content?: string;
  reasoning_content?: string;
  audio?: { data?: string; transcript?: string };
  partial_images?: [{ image_url: { url: string } }];
  images?: [{ image_url: { url: string } }];
  tool_calls?: { index: number; id?: string; function?: { name?: string; arguments?: string } }[];
}

interface Chunk {
  choices: [{ delta: Delta; finish_reason: string | null }];
}

/** Send the message that is written, with its files. */
export async function sendDraft(): Promise<void> {
  const text = draft.value.trim();
  if (isSending.value || !(text || draftFiles.value.length > 0)) return;
  draft.value = "";
  isSending.value = true;
  try {
    await send(text, takeFiles());
  } finally {
    isSending.value = false;
  }
}

/** Send a message, and stop the answer before it. Resolves when the server has accepted it; the
 * answer is shown while it streams. During a conversation by voice it is a turn of that. */
async function send(text: string, files: File[]): Promise<void> {
  clearError("conversation");
  const current = conversation.value;
  const shown = files.map((file) => toAttachedFile(file, getMediaKind(file)));
  const question = current.add(new Turn("user", text, shown));
  question.end();
  const signal = startAnswer();
  try {
    await answerDone;
    const parts = await Promise.all(files.map(toContentPart));
    question.parts = text ? [...parts, { type: "text", text }] : parts;
    if (session.value) session.value.sendTurn(question);
    else await requestAnswer(current, signal);
  } catch (error) {
    current.removeFrom(question);
    if (current !== conversation.value) return;
    draft.value = [text, draft.value].filter(Boolean).join("\n");
    attachFiles(files);
    if (!signal.aborted) showError("conversation", error);
  }
}

function startAnswer(): AbortSignal {
  abortController.abort("interrupted");
  abortController = new AbortController();
  return abortController.signal;
}

/** Stop the answer and its playback. */
export async function stopAnswer(): Promise<void> {
  abortController.abort("stopped");
  await player?.stop();
  endCaptions();
}

/** Start a new conversation, and discard the message being written. */
export async function startConversation(next: Conversation): Promise<void> {
  conversation.value = next;
  draft.value = "";
  takeFiles();
  clearError("conversation");
  await session.value?.stop();
  await stopAnswer();
}

/** Write a message again: it returns to the text field, and the turns after it are removed. */
export async function editTurn(turn: Turn): Promise<void> {
  await stopAnswer();
  await answerDone;
  draft.value = turn.text.value;
  conversation.value.removeFrom(turn);
}

/** Let the model answer again. The answer stays if the server rejects the request. */
export const answerAgain = (turn: Turn): Promise<void> => continueConversation(turn);

/** Request another answer, in place of an answer if there is one. */
async function continueConversation(replaced?: Turn): Promise<void> {
  clearError("conversation");
  const signal = startAnswer();
  await answerDone;
  await requestAnswer(conversation.value, signal, replaced).catch((error) => {
    if (!signal.aborted) showError("conversation", error);
  });
}

/** Send the result of a call. When all calls of the answer have theirs, the model goes on. */
export async function sendResult(turn: Turn, call: Call, result: string): Promise<void> {
  turn.calls.value = turn.calls.value.map((one) => (one.id === call.id ? { ...one, result } : one));
  if (turn.calls.value.every((one) => one.result !== null)) await continueConversation();
}

/** Request the answer to the last turn, in place of an answer if there is one. Resolves when it
 * starts. */
async function requestAnswer(
  current: Conversation,
  signal: AbortSignal,
  replaced?: Turn,
): Promise<void> {
  const playing = await preparePlayer();
  const turns = current.turns.value.filter((turn) => turn !== replaced);
  const body = await buildBody(turns, playing !== null);
  const request = startRequest();
  const { id, events } = await stream<Chunk>("v1/chat/completions", body, signal).catch((error) => {
    throw withFieldLabel(error, (field) => getLabel(field, turns));
  });
  signal.throwIfAborted();
  if (replaced) current.removeFrom(replaced);
  const turn = current.add(new Turn("assistant"));
  Object.assign(turn, { request, body });
  const captions = new Captions();
  if (playing) followPlayback(playing, turn, captions);
  answerDone = showAnswer(events, turn, captions, playing, signal).then(({ reason, error }) => {
    playing?.end();
    captions.end();
    turn.end(t().notes[reason]);
    if (error && current === conversation.value) showError("conversation", error);
    request.end(id).catch((problem) => showError("conversation", problem));
  });
}

/** Stop all playback. Returns the player for the answer, null if speech is off. */
async function preparePlayer(): Promise<Player | null> {
  await player?.stop();
  endCaptions();
  player = settings.isSpoken.value ? await getPlayer(SAMPLE_RATE) : null;
  await player?.stop();
  return player;
}

/** Show which words of a turn were heard, and count the gaps. */
function followPlayback(playing: Player, turn: Turn, captions: Captions): void {
  playing.ondrained = (underruns) => {
    turn.request?.recordUnderruns(underruns);
    turn.heard.value = null;
  };
  playing.onprogress = (seconds) => {
    if (seconds <= 0) return;
    turn.heard.value = endOfWord(turn.text.value, captions.at(seconds));
  };
}

/** Build the body of a chat request. */
async function buildBody(turns: Turn[], isSpoken: boolean): Promise<object> {
  const system = settings.getInstructions();
  const isDrawn = settings.isDrawn.value;
  return {
    model: await getModelId(),
    messages: [
      ...(system ? [{ role: "system", content: system }] : []),
      ...turns.flatMap(toMessages),
    ],
    ...settings.getChatFields(),
    stream: true,
    modalities: ["text", ...(isSpoken ? ["audio"] : []), ...(isDrawn ? ["image"] : [])],
    ...(isSpoken
      ? { audio: { voice: settings.voice.value, format: "pcm16", sample_rate: SAMPLE_RATE } }
      : {}),
    ...(isDrawn ? { image: { partial_images: PREVIEWS } } : {}),
  };
}

/** Return a turn as messages of a request: none if it says nothing. */
export function toMessages(turn: Turn): object[] {
  const text = turn.text.value;
  if (turn.role === "user") {
    const names = turn.files.map(({ name }) => `[${name}]`).join(" ");
    const content = turn.parts ?? [names, text].filter(Boolean).join("\n");
    return content.length > 0 ? [{ role: "user", content }] : [];
  }
  const calls = turn.calls.value;
  if (!text && !turn.images && calls.length === 0) return [];
  return [
    {
      role: "assistant",
      content: text,
      ...(turn.images ? { images: turn.images } : {}),
      ...(calls.length > 0 && {
        tool_calls: calls.map(({ id, name, arguments: args }) => ({
          id,
          type: "function",
          function: { name, arguments: args },
        })),
      }),
    },
    ...calls.map(({ id, result }) => ({
      role: "tool",
      tool_call_id: id,
      content: result ?? "",
    })),
  ];
}

/** Return the label of a field of the body that the user knows; for a file, its name. */
function getLabel(field: string, turns: Turn[]): string | undefined {
  const words = t();
  const labels: Record<string, string> = {
    max_tokens: words.maxTokens,
    temperature: words.temperature,
    top_p: words.topP,
    top_k: words.topK,
    tools: words.tools,
  };
  const match = /^messages\.(\d+)\.content\.(\d+)\./.exec(field);
  if (match === null) return labels[field];
  const before = settings.getInstructions() ? 1 : 0;
  const messages = turns.flatMap((turn) =>
    toMessages(turn).map((_, index) => (index === 0 ? turn : null)),
  );
  return messages[Number(match[1]) - before]?.files[Number(match[2])]?.name;
}

interface End {
  reason: string;
  error?: unknown;
}

/** Show and play an answer while it streams. Resolves to the reason why it ended, and the error if
 * there was one. */
async function showAnswer(
  events: AsyncGenerator<Chunk>,
  turn: Turn,
  captions: Captions,
  playing: Player | null,
  signal: AbortSignal,
): Promise<End> {
  let reason = "incomplete";
  try {
    for await (const { choices } of events) {
      signal.throwIfAborted();
      const [choice] = choices;
      if (choice === undefined) continue;
      reason = choice.finish_reason ?? reason;
      showDelta(choice.delta, turn);
      const { transcript, data } = choice.delta.audio ?? {};
      if (transcript) captions.addText(transcript);
      if (data && playing) captions.addAudio(playDelta(data, playing, turn));
    }
  } catch (error) {
    if (!signal.aborted) return { reason: "incomplete", error };
    reason = signal.reason;
  }
  return { reason };
}

function showDelta(delta: Delta, turn: Turn): void {
  if (delta.content) {
    turn.request?.recordText();
    turn.text.value += delta.content;
  }
  if (delta.reasoning_content) turn.reasoning.value += delta.reasoning_content;
  for (const call of delta.tool_calls ?? []) addCall(call, turn);
  if (delta.partial_images) showImage(delta.partial_images[0].image_url.url, turn, false);
  if (delta.images) {
    turn.images = delta.images;
    turn.request?.recordImage();
    showImage(delta.images[0].image_url.url, turn, true);
  }
}

function showImage(uri: string, turn: Turn, isFinished: boolean): void {
  turn.showImage(createUrlOfDataUri(uri), isFinished);
}

function addCall({ index, id, function: made }: NonNullable<Delta["tool_calls"]>[0], turn: Turn) {
  const calls = [...turn.calls.value];
  const known = calls[index];
  calls[index] = {
    id: known?.id ?? id ?? `call_${index}`,
    name: known?.name ?? made?.name ?? "",
    arguments: (known?.arguments ?? "") + (made?.arguments ?? ""),
    result: null,
  };
  turn.calls.value = calls;
}

/** Play a chunk of speech, record it for the figures and for playing it again. Returns its
 * seconds. */
function playDelta(data: string, playing: Player, turn: Turn): number {
  const samples = decodePcm(data);
  playing.push(samples);
  return turn.recordAudio(samples, playing.rate);
}
