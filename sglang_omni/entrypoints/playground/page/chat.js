/** A written conversation, with files, answered in text and speech. */

import { Attachments, fileName, forgetPreviews, partOf, preview } from "./attachments.js";
import { find } from "./dom.js";
import { named } from "./field_names.js";
import { beginRequest } from "./last_request.js";
import { addTurn } from "./log.js";
import { Notice } from "./notice.js";
import { fromBase64 } from "./pcm.js";
import { playerAt } from "./player.js";
import { servedModel, stream } from "./server.js";
import { chosenVoice, instructions, maxTokens } from "./settings.js";
import { showStarters } from "./starters.js";

/** The rate at which the server makes speech. */
export const RATE = 44_100;

class Chat {
  #notice = new Notice("chat-notice");
  #attached = new Attachments();
  /** What was asked and answered; each conversation has a list of its own. */
  #messages = [];
  /** Stops the last answer; why is among the `NOTES`. */
  #stopping = new AbortController();
  /** Resolves when nothing more comes of the last answer. */
  #answering = Promise.resolve();
  #player = null;

  /** Send what was written and attached. Resolves when the server has taken it: the answer is shown
   * as it comes, and stopped by the next message. */
  async send(text) {
    this.#notice.clear();
    const conversation = this.#messages;
    const files = this.#attached.take();
    const previews = files.map(preview);
    const question = addTurn(find("chat-log"), "You", ...previews);
    question.write(text);
    question.end();
    showStarters();
    this.#stopping.abort("interrupted");
    this.#stopping = new AbortController();
    const { signal } = this.#stopping;
    try {
      await this.#answering;
      const message = { role: "user", content: await contentOf(files, text) };
      await this.#ask(conversation, message, signal);
    } catch (error) {
      forgetPreviews(previews);
      if (conversation !== this.#messages) return;
      question.remove();
      this.#giveBack(files, text);
      if (!signal.aborted) this.#notice.show(error);
    }
  }

  /** Stop the answer, and what is played of it. */
  async stop() {
    this.#stopping.abort("stopped");
    await this.#player?.silence();
  }

  /** Begin another conversation: nothing is left of the last one, nor of what was being written. */
  async begin() {
    this.#messages = [];
    this.#attached.take();
    this.#notice.clear();
    const log = find("chat-log");
    forgetPreviews(log.querySelectorAll("[src]"));
    log.replaceChildren();
    showStarters();
    find("chat-text").value = "";
    find("chat-text").focus();
    await this.stop();
  }

  attach(files) {
    this.#notice.clear();
    try {
      this.#attached.add(files);
    } catch (error) {
      this.#notice.show(error);
    }
  }

  /** A message that was not taken can be changed and sent again. */
  #giveBack(files, text) {
    showStarters();
    this.#attached.add(files);
    const draft = find("chat-text");
    draft.value = [text, draft.value].filter(Boolean).join("\n");
  }

  /** Resolves when the answer begins. */
  async #ask(conversation, message, signal) {
    const player = await this.#quietPlayer();
    const body = await bodyOf([...conversation, message], player !== null);
    const request = beginRequest();
    const { id, events } = await stream("v1/chat/completions", body, signal).catch((error) => {
      throw named(error, (field) => nameOf(field, body));
    });
    signal.throwIfAborted();
    if (player) player.ondrained = (gaps) => request.gaps(gaps);
    const answer = addTurn(find("chat-log"), "Answer");
    const shown = follow(events, { answer, request, player, signal });
    this.#answering = shown.then(({ said, reason, error }) => {
      player?.end();
      answer.end(NOTES[reason]);
      if (said) conversation.push(message, { role: "assistant", content: said });
      if (error && conversation === this.#messages) this.#notice.show(error);
      request.end(id).catch((problem) => this.#notice.show(problem));
    });
  }

  /** Who speaks the answer, if it is to be spoken; nothing else is played any more. */
  async #quietPlayer() {
    await this.#player?.silence();
    this.#player = find("chat-speech").checked ? await playerAt(RATE) : null;
    await this.#player?.silence();
    return this.#player;
  }
}

/** The parts of a message. */
async function contentOf(files, text) {
  const parts = await Promise.all(files.map(partOf));
  return text ? [...parts, { type: "text", text }] : parts;
}

/** The body of a request for the answer to messages. */
async function bodyOf(messages, spoken) {
  const told = instructions();
  return {
    model: await servedModel(),
    messages: told ? [{ role: "system", content: told }, ...messages] : messages,
    max_tokens: maxTokens(),
    stream: true,
    modalities: spoken ? ["text", "audio"] : ["text"],
    ...(spoken && { audio: { voice: chosenVoice(), format: "pcm16", sample_rate: RATE } }),
  };
}

/** What the user calls a field of such a body: a file by its name. */
function nameOf(field, { messages }) {
  if (field === "max_tokens") return "Max tokens";
  const place = /^messages\.(\d+)\.content\.(\d+)\./.exec(field);
  return place === null ? undefined : fileName(messages[place[1]].content[place[2]]);
}

/** What is said of an answer that did not end by itself. */
const NOTES = {
  length: "Stopped at Max tokens.",
  stopped: "Stopped.",
  interrupted: "Stopped by the next message.",
  "broken off": "Broken off.",
};

/** Show and play an answer as it comes. Resolves to its text, to why it ended, and to what went
 * wrong, if something did. */
async function follow(events, { answer, request, player, signal }) {
  let said = "";
  let reason = "broken off";
  try {
    for await (const { choices } of events) {
      signal.throwIfAborted();
      const [{ delta, finish_reason }] = choices;
      reason = finish_reason ?? reason;
      if (delta.content) {
        said += delta.content;
        request.text();
        answer.write(delta.content);
      }
      if (delta.audio?.data) play(delta.audio.data, player, request);
    }
  } catch (error) {
    if (!signal.aborted) return { said, reason: "broken off", error };
    reason = signal.reason;
  }
  return { said, reason };
}

/** Play a piece of speech, and measure it. */
export function play(data, player, request) {
  const samples = fromBase64(data);
  request.sound(samples, player.rate);
  player.push(samples);
}

/** Make the tab work. */
export function startChat() {
  const chat = new Chat();
  const form = find("chat-form");
  const text = find("chat-text");
  const sendButton = find("chat-send");
  form.onsubmit = async (event) => {
    event.preventDefault();
    const written = text.value.trim();
    if (sendButton.disabled || !(written || find("chat-files").children.length > 0)) return;
    text.value = "";
    // Until a message is taken it may yet come back to where the next one is written.
    sendButton.disabled = true;
    await chat.send(written);
    sendButton.disabled = false;
  };
  text.onkeydown = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    form.requestSubmit();
  };
  find("chat-stop").onclick = () => chat.stop();
  find("chat-new").onclick = () => chat.begin();
  takeFiles(chat, find("chat"));
}

/** Files come by a button, by drag and drop, and from the clipboard. */
function takeFiles(chat, panel) {
  const picker = find("chat-picker");
  find("chat-attach").onclick = () => picker.click();
  picker.onchange = () => {
    chat.attach(picker.files);
    picker.value = "";
  };
  panel.onpaste = ({ clipboardData }) => {
    if (clipboardData.files.length > 0) chat.attach(clipboardData.files);
  };
  panel.ondragover = (event) => {
    event.preventDefault();
    panel.classList.add("dropping");
  };
  panel.ondragleave = () => panel.classList.remove("dropping");
  panel.ondrop = (event) => {
    event.preventDefault();
    panel.classList.remove("dropping");
    chat.attach(event.dataTransfer.files);
  };
}
