/** The tab for a conversation by voice. */

import { makeConnectionError } from "./connection.js";
import { find, readNumber } from "./dom.js";
import { clearEvents, logEvent } from "./event_log.js";
import { startRequest } from "./last_request.js";
import { addTurn } from "./log.js";
import { Microphone } from "./microphone.js";
import { Notice } from "./notice.js";
import { decodePcm, encodePcm } from "./pcm.js";
import { getPlayer } from "./player.js";
import { makeHoldable } from "./push_button.js";
import { RealtimeSession, SAMPLE_RATE, buildSession, getTurnDetection } from "./realtime.js";
import { loadModel } from "./server.js";
import { getInstructions, getMaxTokens, getVoice } from "./settings.js";
import { SpokenAnswer } from "./spoken_answer.js";

/** The server's minimum length of a turn. */
const MIN_TURN_SECONDS = 0.1;
/** Code of the error if the response had ended before the user stopped it. It is harmless. */
const NOT_ACTIVE_CODE = "response_cancel_not_active";
/** Notes for a response that did not end by itself. One that the user interrupted has its own. */
const NOTES = { incomplete: "Stopped at Max tokens.", failed: "The answer is incomplete." };

const getSpeed = () => readNumber("talk-speed", "Speed");
const isHandsFree = () => find("talk-mode").querySelector(":checked").value === "hands-free";
const showState = (state) => {
  find("talk-state").value = state;
};

class Talk {
  #notice = new Notice("talk-notice");
  #session = null;
  #microphone = null;
  #answer = null;
  #request = null;
  #turns = new Map();
  #responding = false;
  #talking = false;
  #numSamples = 0;

  /** Start a session and listen. */
  async start() {
    this.#notice.clear();
    clearEvents();
    find("talk-log").replaceChildren();
    this.#turns.clear();
    find("talk-start").disabled = true;
    showState("Connecting");
    try {
      this.#buildSettings(); // Report invalid settings before a session starts.
      await this.#open();
      this.#updateButtons(true);
    } catch (error) {
      await this.stop();
      this.#notice.show(error);
    }
  }

  async #open() {
    const player = await getPlayer(SAMPLE_RATE);
    this.#answer = new SpokenAnswer(player);
    player.ondrained = (underruns) => {
      this.#answer.clear();
      this.#request?.recordUnderruns(underruns);
      if (!this.#talking) showState("Listening");
    };
    // Must come first: this request can ask for a key, which a WebSocket cannot, and if it fails,
    // the user need not allow the microphone.
    const { id: model } = await loadModel();
    this.#microphone = await Microphone.open(SAMPLE_RATE, (samples) => this.#sendAudio(samples));
    this.#session = await RealtimeSession.open(
      model,
      (event, sender) => this.#handleEvent(event, sender),
      (reason) => this.#handleClose(reason),
    );
  }

  /** Handle the end of the session. */
  async #handleClose(reason) {
    if (this.#session === null) return;
    await this.stop();
    const ended = new Error(`The session has ended: ${reason}`);
    this.#notice.show(reason ? ended : await makeConnectionError());
  }

  /** End the session. */
  async stop() {
    const [session, microphone] = [this.#session, this.#microphone];
    this.#session = null;
    this.#microphone = null;
    this.#responding = false;
    this.#talking = false;
    session?.close();
    await this.#answer?.stop();
    await microphone?.close();
    this.#turns.forEach((turn) => turn.end());
    this.#updateButtons(false);
    showState("Not connected");
  }

  /** Apply a change of the mode or the speed. */
  change() {
    this.#updateButtons(this.#session !== null);
    try {
      const input = { turn_detection: getTurnDetection(isHandsFree()) };
      const audio = { input, output: { speed: getSpeed() } };
      this.#session?.send({ type: "session.update", session: { type: "realtime", audio } });
    } catch (error) {
      this.#notice.show(error);
    }
  }

  /** Handle a press of the button: stop the answer and start a turn. */
  press() {
    if (this.#session === null || this.#talking) return;
    this.#talking = true;
    this.#numSamples = 0;
    showState("You are speaking");
    this.#session.send({ type: "input_audio_buffer.clear" });
    if (this.#responding) this.#session.send({ type: "response.cancel" });
    void this.#interrupt();
  }

  /** Handle the release of the button: commit the turn. */
  release() {
    if (!this.#talking) return;
    this.#talking = false;
    if (this.#numSamples < MIN_TURN_SECONDS * SAMPLE_RATE) {
      showState("Listening");
      this.#notice.show(new Error("Hold the button for as long as you speak."));
      return;
    }
    this.#notice.clear();
    this.#session.send({ type: "input_audio_buffer.commit" });
    this.#session.send({ type: "response.create" });
    this.#expectAnswer();
  }

  #sendAudio(samples) {
    if (this.#session === null || !(isHandsFree() || this.#talking)) return;
    this.#numSamples += samples.length;
    this.#session.send({ type: "input_audio_buffer.append", audio: encodePcm(samples) });
  }

  /** Show that an answer is expected. */
  #expectAnswer() {
    showState("Thinking");
    this.#request = startRequest();
  }

  /** Stop playback, and tell the server how much of the answer was played. */
  async #interrupt() {
    const truncation = await this.#answer.stop();
    if (truncation === null) return;
    this.#session?.send(truncation);
    const seconds = (truncation.audio_end_ms / 1000).toFixed(1);
    this.#turns.get(truncation.item_id)?.end(`Interrupted after ${seconds} s.`);
  }

  #handleEvent(event, sender) {
    logEvent(event, sender);
    if (sender !== "server") return;
    switch (event.type) {
      case "session.created":
        return this.#session.send({ type: "session.update", session: this.#buildSettings() });
      case "session.updated":
        return showState("Listening");
      case "input_audio_buffer.speech_started":
        showState("You are speaking");
        return void this.#interrupt();
      case "input_audio_buffer.speech_stopped":
        return this.#expectAnswer();
      case "input_audio_buffer.committed":
        return this.#getTurn(event.item_id, "You").appendText("…");
      case "conversation.item.input_audio_transcription.completed":
        return this.#setTranscript(event.item_id, event.transcript);
      case "conversation.item.input_audio_transcription.failed":
        return this.#setTranscript(event.item_id, "(no transcript)");
      case "error":
        if (event.error.code !== NOT_ACTIVE_CODE) this.#notice.show(new Error(event.error.message));
        return undefined;
      default:
        return this.#handleResponseEvent(event);
    }
  }

  #handleResponseEvent(event) {
    switch (event.type) {
      case "response.created":
        this.#responding = true;
        // A response after the idle timeout has no user turn before it.
        this.#request ??= startRequest();
        break;
      case "response.output_audio_transcript.delta":
        this.#request.recordText();
        this.#getTurn(event.item_id, "Answer").appendText(event.delta);
        break;
      case "response.output_audio.delta":
        this.#play(event.item_id, decodePcm(event.delta));
        break;
      case "response.output_audio.done":
        this.#answer.end(event.item_id);
        break;
      case "response.done":
        this.#finishResponse(event.response);
    }
  }

  #play(item, samples) {
    if (!this.#answer.push(item, samples)) return;
    this.#request.recordAudio(samples, SAMPLE_RATE);
    showState("Speaking");
  }

  #finishResponse({ id, status, status_details, output }) {
    this.#responding = false;
    output.forEach((item) => this.#turns.get(item.id)?.end(NOTES[status]));
    if (status_details?.error) this.#notice.show(new Error(status_details.error.message));
    if (!this.#answer.isPlaying && !this.#talking && status !== "cancelled") showState("Listening");
    this.#request.end(id).catch((error) => this.#notice.show(error));
  }

  #getTurn(item, who) {
    if (!this.#turns.has(item)) this.#turns.set(item, addTurn(find("talk-log"), who));
    return this.#turns.get(item);
  }

  #setTranscript(item, text) {
    const turn = this.#getTurn(item, "You");
    turn.setText(text);
    turn.end();
  }

  #buildSettings() {
    return buildSession({
      voice: getVoice(),
      speed: getSpeed(),
      instructions: getInstructions(),
      maxTokens: getMaxTokens(),
      handsFree: isHandsFree(),
    });
  }

  #updateButtons(connected) {
    find("talk-start").disabled = connected;
    find("talk-stop").disabled = !connected;
    find("talk-push").disabled = !connected || isHandsFree();
  }
}

/** Set up the tab. */
export function startTalking() {
  const talk = new Talk();
  find("talk-start").onclick = () => talk.start();
  find("talk-stop").onclick = () => talk.stop();
  find("talk-mode").onchange = () => talk.change();
  makeHoldable(find("talk-push"), {
    press: () => talk.press(),
    release: () => talk.release(),
  });
}
