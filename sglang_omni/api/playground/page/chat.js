/** A written conversation, with files, answered in text and speech. */

import { Attachments, partOf, preview } from "./attachments.js";
import { find } from "./dom.js";
import { beginRequest } from "./last_request.js";
import { addTurn } from "./log.js";
import { complain, settle } from "./notice.js";
import { fromBase64 } from "./pcm.js";
import { playerAt } from "./player.js";
import { servedModel, stream } from "./server.js";
import { chosenVoice, instructions, mostTokens } from "./settings.js";

/** The rate at which the server makes speech. */
export const RATE = 44_100;

class Chat {
  #messages = [];
  #attached = new Attachments();
  #stop = null;
  #player = null;

  /** Send what was written and attached, and show the answer as it comes. */
  async send(text) {
    settle();
    const files = this.#attached.take();
    this.#stop = new AbortController();
    find("chat-send").disabled = true;
    const question = addTurn(find("chat-log"), "You", ...files.map(preview));
    question.write(text);
    question.end();
    try {
      const parts = await Promise.all(files.map(partOf));
      if (text) parts.push({ type: "text", text });
      await this.#ask({ role: "user", content: parts }, this.#stop.signal);
    } catch (error) {
      this.#giveBack(question, files, text);
      complain(error);
    } finally {
      find("chat-send").disabled = false;
    }
  }

  /** Stop the answer, and what is played of it. */
  async stop() {
    this.#stop?.abort();
    await this.#player?.silence();
  }

  /** Forget the conversation. */
  async begin() {
    await this.stop();
    this.#messages = [];
    for (const shown of find("chat-log").querySelectorAll("[src]")) URL.revokeObjectURL(shown.src);
    find("chat-log").replaceChildren();
    find("chat-text").focus();
  }

  attach(files) {
    settle();
    this.#attached.add(files);
  }

  /** A question that was not answered can be changed and sent again. */
  #giveBack(question, files, text) {
    question.remove();
    this.#attached.add(files);
    find("chat-text").value ||= text;
  }

  async #ask(message, signal) {
    const messages = this.#messages;
    const player = await this.#quietPlayer();
    const body = await this.#body([...messages, message]);
    const request = beginRequest();
    const { id, events } = await stream("v1/chat/completions", body, signal);
    if (player) player.ondrained = (gaps) => request.gaps(gaps);
    const answer = addTurn(find("chat-log"), "Answer");
    const { said, reason } = await follow(events, { answer, request, player, signal });
    player?.end();
    answer.end(NOTES[reason]);
    if (said) messages.push(message, { role: "assistant", content: said });
    request.end(id).catch(complain);
  }

  /** Who speaks the answer, if it is to be spoken; nothing else is played any more. */
  async #quietPlayer() {
    await this.#player?.silence();
    this.#player = find("chat-speech").checked ? await playerAt(RATE) : null;
    await this.#player?.silence();
    return this.#player;
  }

  async #body(messages) {
    const told = instructions();
    const spoken = this.#player !== null;
    return {
      model: await servedModel(),
      messages: told ? [{ role: "system", content: told }, ...messages] : messages,
      max_tokens: mostTokens(),
      stream: true,
      modalities: spoken ? ["text", "audio"] : ["text"],
      ...(spoken && { audio: { voice: chosenVoice(), format: "pcm16", sample_rate: RATE } }),
    };
  }
}

/** What is said of an answer that did not end by itself. */
const NOTES = {
  length: "The longest answer that was allowed.",
  stopped: "Stopped.",
  "broken off": "Broken off.",
};

/** Show and play an answer as it comes. Resolves to its text, and to why it ended. */
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
    reason = error.name === "AbortError" ? "stopped" : "broken off";
    complain(error);
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
  form.onsubmit = (event) => {
    event.preventDefault();
    const written = text.value.trim();
    if (!written && find("chat-files").children.length === 0) return;
    text.value = "";
    void chat.send(written);
  };
  text.onkeydown = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (!find("chat-send").disabled) form.requestSubmit();
  };
  find("chat-stop").onclick = () => chat.stop();
  find("chat-new").onclick = () => chat.begin();
  takeFiles(chat, find("chat"));
}

/** Files come by a button, by drag and drop, and from the clipboard. */
function takeFiles(chat, panel) {
  const attach = (files) => {
    try {
      chat.attach(files);
    } catch (error) {
      complain(error);
    }
  };
  const picker = find("chat-picker");
  find("chat-attach").onclick = () => picker.click();
  picker.onchange = () => {
    attach(picker.files);
    picker.value = "";
  };
  panel.onpaste = ({ clipboardData }) => attach(clipboardData.files);
  panel.ondragover = (event) => {
    event.preventDefault();
    panel.classList.add("dropping");
  };
  panel.ondragleave = () => panel.classList.remove("dropping");
  panel.ondrop = (event) => {
    event.preventDefault();
    panel.classList.remove("dropping");
    attach(event.dataTransfer.files);
  };
}
