/** A conversation by voice, in the same thread as what is written. */

import { Microphone } from "../audio/microphone.ts";
import { decodePcm, encodePcm } from "../audio/pcm.ts";
import { type Player, getPlayer } from "../audio/player.ts";
import { getLevel } from "../audio/recorder.ts";
import { SpokenAnswer } from "../audio/spoken_answer.ts";
import { makeConnectionError } from "../server/connection.ts";
import {
  type RealtimeEvent,
  RealtimeSession,
  SAMPLE_RATE,
  type Sender,
  buildSession,
} from "../server/realtime.ts";
import { Captions, endOfWord } from "../state/captions.ts";
import { Turn, conversation, endCaptions } from "../state/conversation.ts";
import { clearEvents, logEvent } from "../state/events.ts";
import { loadModel } from "../state/model.ts";
import { clearError, showError } from "../state/notices.ts";
import { type LastRequest, startRequest } from "../state/requests.ts";
import * as settings from "../state/settings.ts";
import { type TalkSession, isMuted, level, session, talkState } from "../state/talk.ts";
import { t } from "../text/index.ts";
import { stopAnswer } from "./chat.ts";

/** The server's minimum length of a turn. */
const MIN_TURN_SECONDS = 0.1;
/** Code of the error if the response had ended before the user stopped it. It is harmless. */
const NOT_ACTIVE_CODE = "response_cancel_not_active";

/** Start a session and listen. */
export async function startTalking(): Promise<void> {
  if (session.value) return;
  clearError("conversation");
  clearEvents();
  const started = new VoiceSession();
  session.value = started;
  talkState.value = "connecting";
  isMuted.value = false;
  try {
    await stopAnswer();
    await started.open();
  } catch (error) {
    await started.stop();
    showError("conversation", error);
  }
}

/** Mute the microphone, or end that. */
export function mute(muted: boolean): void {
  isMuted.value = muted;
  session.value?.mute(muted);
}

const isHandsFree = (): boolean => !settings.isPushToTalk.value;

class VoiceSession implements TalkSession {
  #connection: RealtimeSession | null = null;
  #microphone: Microphone | null = null;
  #player: Player | null = null;
  #answer: SpokenAnswer | null = null;
  #request: LastRequest | null = null;
  /** Where its turns belong, also if another conversation is shown by then. */
  readonly #conversation = conversation.value;
  readonly #turns = new Map<string, Turn>();
  readonly #captions = new Map<string, Captions>();
  #isResponding = false;
  #isPushed = false;
  #isSeeded = false;
  /** Whether a written turn waits for the session to begin. */
  #isWaiting = false;
  #isStopped = false;
  #numSamples = 0;

  async open(): Promise<void> {
    buildSettings(); // Report invalid settings before a session starts.
    const player = await getPlayer(SAMPLE_RATE);
    this.#player = player;
    this.#answer = new SpokenAnswer(player);
    player.ondrained = (underruns) => this.#finishPlayback(underruns);
    player.onprogress = () => {};
    // Must come first: this request can ask for a key, which a WebSocket cannot, and if it fails,
    // the user need not allow the microphone.
    const model = await loadModel();
    const device = settings.microphone.value;
    this.#microphone = await Microphone.open(SAMPLE_RATE, device, (samples) =>
      this.#sendAudio(samples),
    );
    this.#connection = await RealtimeSession.open(
      model,
      (event, sender) => this.#handleEvent(event, sender),
      (reason) => void this.#handleClose(reason),
    );
    // The user may have ended it while it was opened.
    if (this.#isStopped) await this.stop();
  }

  /** Handle the end of the session. */
  async #handleClose(reason: string): Promise<void> {
    if (this.#connection === null) return;
    await this.stop();
    const ended = new Error(t().sessionEnded(reason));
    showError("conversation", reason ? ended : await makeConnectionError());
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    const [connection, microphone] = [this.#connection, this.#microphone];
    this.#connection = null;
    this.#microphone = null;
    if (session.value === this) session.value = null;
    connection?.close();
    await this.#answer?.stop();
    endCaptions();
    await microphone?.close();
    for (const turn of this.#turns.values()) if (turn.isBusy.value) turn.end();
    level.value = 0;
  }

  mute(isMuted: boolean): void {
    if (this.#microphone) this.#microphone.isMuted = isMuted;
  }

  change(): void {
    try {
      const { instructions, max_output_tokens, audio } = buildSettings();
      const { turn_detection } = audio.input;
      const { voice, speed } = audio.output;
      this.#send({
        type: "session.update",
        session: {
          type: "realtime",
          instructions: instructions ?? "",
          max_output_tokens,
          audio: { input: { turn_detection }, output: { voice, speed } },
        },
      });
    } catch (error) {
      showError("conversation", error);
    }
  }

  sendTurn(turn: Turn): void {
    const content = toContent(turn);
    if (!this.#isSeeded) {
      // It is told to the model with what was written before.
      this.#isWaiting = true;
      return;
    }
    if (this.#isResponding) this.#send({ type: "response.cancel" });
    void this.#interrupt();
    this.#send({ type: "conversation.item.create", item: toItem("user", content) });
    this.#requestResponse();
  }

  press(): void {
    if (this.#connection === null || this.#isPushed) return;
    this.#isPushed = true;
    this.#numSamples = 0;
    talkState.value = "hearing";
    this.#send({ type: "input_audio_buffer.clear" });
    if (this.#isResponding) this.#send({ type: "response.cancel" });
    void this.#interrupt();
  }

  release(): void {
    if (!this.#isPushed) return;
    this.#isPushed = false;
    if (this.#numSamples < MIN_TURN_SECONDS * SAMPLE_RATE) {
      talkState.value = "listening";
      showError("conversation", new Error(t().holdHint));
      return;
    }
    clearError("conversation");
    this.#send({ type: "input_audio_buffer.commit" });
    this.#send({ type: "response.create" });
    this.#expectAnswer(true);
  }

  #send(event: RealtimeEvent): void {
    this.#connection?.send(event);
  }

  #sendAudio(samples: Float32Array): void {
    if (this.#connection === null) return;
    if (talkState.value !== "speaking") level.value = isMuted.value ? 0 : getLevel(samples);
    if (!(isHandsFree() || this.#isPushed)) return;
    this.#numSamples += samples.length;
    this.#send({ type: "input_audio_buffer.append", audio: encodePcm(samples) });
  }

  /** Show that an answer is expected. */
  #expectAnswer(isAfterSpeech: boolean): void {
    talkState.value = "thinking";
    this.#request = startRequest(isAfterSpeech);
  }

  #finishPlayback(underruns: number): void {
    this.#answer?.clear();
    this.#request?.recordUnderruns(underruns);
    endCaptions();
    if (!this.#isPushed && session.value === this) talkState.value = "listening";
  }

  /** Stop playback, and tell the server how much of the answer was played. */
  async #interrupt(): Promise<void> {
    const truncation = (await this.#answer?.stop()) ?? null;
    if (truncation === null) return;
    endCaptions();
    this.#send(truncation);
    const seconds = ((truncation["audio_end_ms"] as number) / 1000).toFixed(1);
    this.#turns.get(truncation["item_id"] as string)?.end(t().interruptedAfter(seconds));
  }

  #handleEvent(event: RealtimeEvent, sender: Sender): void {
    logEvent(event, sender);
    if (sender !== "server") return;
    switch (event.type) {
      case "session.created":
        return this.#send({ type: "session.update", session: buildSettings() });
      case "session.updated":
        return this.#begin();
      case "input_audio_buffer.speech_started":
        talkState.value = "hearing";
        return void this.#interrupt();
      case "input_audio_buffer.speech_stopped":
        return this.#expectAnswer(true);
      case "input_audio_buffer.committed":
        this.#getTurn(event["item_id"], "user").text.value = "…";
        return undefined;
      case "conversation.item.input_audio_transcription.completed":
        return this.#setTranscript(event["item_id"], event["transcript"]);
      case "conversation.item.input_audio_transcription.failed":
        return this.#setTranscript(event["item_id"], t().noTranscript);
      case "error":
        if (event["error"].code !== NOT_ACTIVE_CODE) {
          showError("conversation", event["error"].message);
        }
        return undefined;
      default:
        return this.#handleResponseEvent(event);
    }
  }

  /** Tell the model what was said before the session, and listen. */
  #begin(): void {
    if (talkState.value === "connecting") talkState.value = "listening";
    if (this.#isSeeded) return;
    this.#isSeeded = true;
    for (const turn of this.#conversation.turns.value) {
      const content = turn.role === "user" ? toContent(turn, true) : toAnswerContent(turn);
      if (content.length > 0) {
        this.#send({ type: "conversation.item.create", item: toItem(turn.role, content) });
      }
    }
    if (this.#isWaiting) this.#requestResponse();
  }

  /** Let the model answer what was written. */
  #requestResponse(): void {
    this.#send({ type: "response.create" });
    this.#expectAnswer(false);
  }

  #handleResponseEvent(event: RealtimeEvent): void {
    switch (event.type) {
      case "response.created":
        this.#isResponding = true;
        // A response after the idle timeout has no user turn before it.
        this.#request ??= startRequest();
        break;
      case "response.output_audio_transcript.delta":
        this.#showText(event["item_id"], event["delta"]);
        break;
      case "response.output_audio.delta":
        this.#play(event["item_id"], decodePcm(event["delta"]));
        break;
      case "response.output_audio.done":
        this.#captions.get(event["item_id"])?.end();
        this.#answer?.end(event["item_id"]);
        break;
      case "response.done":
        this.#finishResponse(event["response"]);
    }
  }

  #showText(item: string, text: string): void {
    this.#request?.recordText();
    this.#getTurn(item, "assistant").text.value += text;
    this.#getCaptions(item).addText(text);
  }

  #play(item: string, samples: Float32Array): void {
    const answer = this.#answer;
    if (!answer?.push(item, samples)) return;
    const turn = this.#getTurn(item, "assistant");
    const captions = this.#getCaptions(item);
    captions.addAudio(turn.recordAudio(samples, SAMPLE_RATE));
    talkState.value = "speaking";
    level.value = getLevel(samples);
    if (this.#player === null) return;
    this.#player.onprogress = (seconds) => {
      const inside = seconds - answer.startSeconds;
      if (inside > 0) turn.heard.value = endOfWord(turn.text.value, captions.at(inside));
    };
  }

  #finishResponse({ id, status, status_details, output }: RealtimeEvent["response"]): void {
    this.#isResponding = false;
    for (const item of output) {
      const turn = this.#turns.get(item.id);
      // One that the user interrupted has its own note.
      const reason = status === "incomplete" ? "length" : status;
      if (turn && !turn.note.value) turn.end(t().notes[reason] ?? "");
    }
    if (status_details?.error) showError("conversation", status_details.error.message);
    const isQuiet = !this.#answer?.isPlaying && !this.#isPushed;
    if (isQuiet && status !== "cancelled") talkState.value = "listening";
    this.#request?.end(id).catch((error) => showError("conversation", error));
  }

  #getTurn(item: string, role: "user" | "assistant"): Turn {
    const known = this.#turns.get(item);
    if (known) return known;
    const turn = this.#conversation.add(new Turn(role));
    turn.request = role === "assistant" ? this.#request : null;
    this.#turns.set(item, turn);
    return turn;
  }

  #getCaptions(item: string): Captions {
    const captions = this.#captions.get(item) ?? new Captions();
    this.#captions.set(item, captions);
    return captions;
  }

  #setTranscript(item: string, text: string): void {
    const turn = this.#getTurn(item, "user");
    turn.text.value = text;
    turn.end();
  }
}

function buildSettings() {
  return buildSession({
    voice: settings.voice.value,
    speed: settings.getSpeed(),
    instructions: settings.getInstructions(),
    maxTokens: settings.getMaxTokens(),
    isHandsFree: isHandsFree(),
  });
}

interface ImagePart {
  type: string;
  text?: string;
  image_url?: { url: string };
}

/** Return the content of a written turn. Recordings and videos cannot be part of a session: they
 * are left out of what was said before it, and an error in a new turn. */
function toContent(turn: Turn, isBefore = false): object[] {
  const text = turn.text.value;
  const parts = (turn.parts ?? (text ? [{ type: "text", text }] : [])) as ImagePart[];
  return parts.flatMap((part, index): object[] => {
    if (part.text !== undefined) return [{ type: "input_text", text: part.text }];
    if (part.image_url) return [{ type: "input_image", image_url: part.image_url.url }];
    if (isBefore) return [];
    throw new Error(t().notInTalk(turn.files[index]?.name ?? ""));
  });
}

const toAnswerContent = (turn: Turn): object[] =>
  turn.text.value ? [{ type: "output_text", text: turn.text.value }] : [];

const toItem = (role: string, content: object[]): object => ({ type: "message", role, content });
