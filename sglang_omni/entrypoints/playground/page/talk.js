/** A conversation by voice: who speaks, what is shown and heard of it. */

import { noReply } from "./connection.js";
import { checkedNumber, find } from "./dom.js";
import { clearEvents, logEvent } from "./event_log.js";
import { beginRequest } from "./last_request.js";
import { addTurn } from "./log.js";
import { Microphone } from "./microphone.js";
import { Notice } from "./notice.js";
import { fromBase64, toBase64 } from "./pcm.js";
import { playerAt } from "./player.js";
import { holdable } from "./push_button.js";
import { RATE, RealtimeSession, sessionOf, turnDetection } from "./realtime.js";
import { askForModel } from "./server.js";
import { chosenVoice, instructions, maxTokens } from "./settings.js";
import { SpokenAnswer } from "./spoken_answer.js";

/** The server takes no shorter turn. */
const SHORTEST_SECONDS = 0.1;
/** The answer had ended when the user stopped it: nothing is wrong. */
const TOO_LATE = "response_cancel_not_active";
/** What is said of an answer that did not end by itself; who spoke over it knows. */
const NOTES = { incomplete: "Stopped at Max tokens.", failed: "Broken off." };

const chosenSpeed = () => checkedNumber("talk-speed", "Speed");
const handsFree = () => find("talk-mode").querySelector(":checked").value === "hands-free";
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
  #heard = 0;

  /** Begin a session, and listen. */
  async start() {
    this.#notice.clear();
    clearEvents();
    find("talk-log").replaceChildren();
    this.#turns.clear();
    find("talk-start").disabled = true;
    showState("Connecting");
    try {
      this.#wanted(); // What is wrong with it is said before a session begins.
      await this.#open();
      this.#connected(true);
    } catch (error) {
      await this.stop();
      this.#notice.show(error);
    }
  }

  async #open() {
    const player = await playerAt(RATE);
    this.#answer = new SpokenAnswer(player);
    player.ondrained = (gaps) => {
      this.#answer.over();
      this.#request?.gaps(gaps);
      if (!this.#talking) showState("Listening");
    };
    // Nobody is asked for a microphone in vain; and a WebSocket could not ask for a key.
    const { id: model } = await askForModel();
    this.#microphone = await Microphone.open(RATE, (samples) => this.#hear(samples));
    this.#session = await RealtimeSession.open(
      model,
      (event, sender) => this.#take(event, sender),
      (reason) => this.#closed(reason),
    );
  }

  /** The session has ended, by whoever ended it. */
  async #closed(reason) {
    if (this.#session === null) return;
    await this.stop();
    this.#notice.show(reason ? new Error(`The session has ended: ${reason}`) : await noReply());
  }

  /** End the session. */
  async stop() {
    const [session, microphone] = [this.#session, this.#microphone];
    this.#session = null;
    this.#microphone = null;
    this.#responding = false;
    this.#talking = false;
    session?.close();
    await this.#answer?.silence();
    await microphone?.close();
    this.#turns.forEach((turn) => turn.end());
    this.#connected(false);
    showState("Not connected");
  }

  /** The user wants to talk in another way from now on, or to be answered at another speed. */
  change() {
    this.#connected(this.#session !== null);
    try {
      const input = { turn_detection: turnDetection(handsFree()) };
      const audio = { input, output: { speed: chosenSpeed() } };
      this.#session?.send({ type: "session.update", session: { type: "realtime", audio } });
    } catch (error) {
      this.#notice.show(error);
    }
  }

  /** The user pushes the button: whatever is being said ends. */
  press() {
    if (this.#session === null || this.#talking) return;
    this.#talking = true;
    this.#heard = 0;
    showState("You are speaking");
    this.#session.send({ type: "input_audio_buffer.clear" });
    if (this.#responding) this.#session.send({ type: "response.cancel" });
    void this.#interrupt();
  }

  /** The user lets the button go: what was said is a turn. */
  release() {
    if (!this.#talking) return;
    this.#talking = false;
    if (this.#heard < SHORTEST_SECONDS * RATE) {
      showState("Listening");
      this.#notice.show(new Error("Hold the button for as long as you speak."));
      return;
    }
    this.#notice.clear();
    this.#session.send({ type: "input_audio_buffer.commit" });
    this.#session.send({ type: "response.create" });
    this.#await();
  }

  #hear(samples) {
    if (this.#session === null || !(handsFree() || this.#talking)) return;
    this.#heard += samples.length;
    this.#session.send({ type: "input_audio_buffer.append", audio: toBase64(samples) });
  }

  /** The user has spoken; an answer is due. */
  #await() {
    showState("Thinking");
    this.#request = beginRequest();
  }

  /** Fall silent, and tell the server how much of the answer was heard. */
  async #interrupt() {
    const cut = await this.#answer.silence();
    if (cut === null) return;
    this.#session?.send(cut);
    const seconds = (cut.audio_end_ms / 1000).toFixed(1);
    this.#turns.get(cut.item_id)?.end(`Heard for ${seconds} s, then spoken over.`);
  }

  #take(event, sender) {
    logEvent(event, sender);
    if (sender !== "server") return;
    switch (event.type) {
      case "session.created":
        return this.#session.send({ type: "session.update", session: this.#wanted() });
      case "session.updated":
        return showState("Listening");
      case "input_audio_buffer.speech_started":
        showState("You are speaking");
        return void this.#interrupt();
      case "input_audio_buffer.speech_stopped":
        return this.#await();
      case "input_audio_buffer.committed":
        return this.#turn(event.item_id, "You").write("…");
      case "conversation.item.input_audio_transcription.completed":
        return this.#written(event.item_id, event.transcript);
      case "conversation.item.input_audio_transcription.failed":
        return this.#written(event.item_id, "(no transcript)");
      case "error":
        if (event.error.code !== TOO_LATE) this.#notice.show(new Error(event.error.message));
        return undefined;
      default:
        return this.#takeAnswer(event);
    }
  }

  #takeAnswer(event) {
    switch (event.type) {
      case "response.created":
        this.#responding = true;
        // Where it was not the user's turn that brought it.
        this.#request ??= beginRequest();
        break;
      case "response.output_audio_transcript.delta":
        this.#request.text();
        this.#turn(event.item_id, "Answer").write(event.delta);
        break;
      case "response.output_audio.delta":
        this.#play(event.item_id, fromBase64(event.delta));
        break;
      case "response.output_audio.done":
        this.#answer.end(event.item_id);
        break;
      case "response.done":
        this.#done(event.response);
    }
  }

  #play(item, samples) {
    if (!this.#answer.push(item, samples)) return;
    this.#request.sound(samples, RATE);
    showState("Speaking");
  }

  #done({ id, status, status_details, output }) {
    this.#responding = false;
    output.forEach((item) => this.#turns.get(item.id)?.end(NOTES[status]));
    if (status_details?.error) this.#notice.show(new Error(status_details.error.message));
    if (!this.#answer.isPlaying && !this.#talking && status !== "cancelled") showState("Listening");
    this.#request.end(id).catch((error) => this.#notice.show(error));
  }

  #turn(item, who) {
    if (!this.#turns.has(item)) this.#turns.set(item, addTurn(find("talk-log"), who));
    return this.#turns.get(item);
  }

  #written(item, text) {
    const turn = this.#turn(item, "You");
    turn.say(text);
    turn.end();
  }

  #wanted() {
    return sessionOf({
      voice: chosenVoice(),
      speed: chosenSpeed(),
      instructions: instructions(),
      maxTokens: maxTokens(),
      handsFree: handsFree(),
    });
  }

  #connected(connected) {
    find("talk-start").disabled = connected;
    find("talk-stop").disabled = !connected;
    find("talk-push").disabled = !connected || handsFree();
  }
}

/** Make the tab work. */
export function startTalking() {
  const talk = new Talk();
  find("talk-start").onclick = () => talk.start();
  find("talk-stop").onclick = () => talk.stop();
  find("talk-mode").onchange = () => talk.change();
  holdable(find("talk-push"), {
    press: () => talk.press(),
    release: () => talk.release(),
  });
}
