/** The chat tab: written messages with files, answered in text and speech. */

import { Attachments, getFileName, preview, revokePreviews, toContentPart } from "./attachments.js";
import { find } from "./dom.js";
import { withFieldLabel } from "./field_names.js";
import { startRequest } from "./last_request.js";
import { createImageUrl, parseDataUri } from "./image_url.js";
import { addTurn } from "./log.js";
import { Notice } from "./notice.js";
import { decodePcm } from "./pcm.js";
import { getPlayer } from "./player.js";
import { getModelId, stream } from "./server.js";
import { getInstructions, getMaxTokens, getVoice } from "./settings.js";
import { updateStarterVisibility } from "./starters.js";

/** How often an image is shown before it is finished. */
const PREVIEWS = 3;
/** The sample rate to request for speech, in Hz. */
export const SAMPLE_RATE = 44_100;

class Chat {
  #notice = new Notice("chat-notice");
  #attachments = new Attachments();
  /** The messages of the conversation. A new conversation has a new array. */
  #messages = [];
  /** Stops the last answer. The reason is a key of `NOTES`. */
  #abortController = new AbortController();
  /** Resolves when the last answer has ended. */
  #answerDone = Promise.resolve();
  #player = null;

  /** Send the message with its files, and stop the answer before it. Resolves when the server has
   * accepted it; the answer is shown while it streams. */
  async send(text) {
    this.#notice.clear();
    const conversation = this.#messages;
    const files = this.#attachments.take();
    const previews = files.map(preview);
    const question = addTurn(find("chat-log"), "You", ...previews);
    question.appendText(text);
    question.end();
    updateStarterVisibility();
    this.#abortController.abort("interrupted");
    this.#abortController = new AbortController();
    const { signal } = this.#abortController;
    try {
      await this.#answerDone;
      const message = { role: "user", content: await buildContent(files, text) };
      await this.#requestAnswer(conversation, message, signal);
    } catch (error) {
      revokePreviews(previews);
      if (conversation !== this.#messages) return;
      question.remove();
      this.#restoreDraft(files, text);
      if (!signal.aborted) this.#notice.show(error);
    }
  }

  /** Stop the answer and its playback. */
  async stop() {
    this.#abortController.abort("stopped");
    await this.#player?.stop();
  }

  /** Start a new conversation. Discards the last one and the message being written. */
  async reset() {
    this.#messages = [];
    this.#attachments.take();
    this.#notice.clear();
    const log = find("chat-log");
    revokePreviews(log.querySelectorAll("[src]"));
    log.replaceChildren();
    updateStarterVisibility();
    find("chat-text").value = "";
    find("chat-text").focus();
    await this.stop();
  }

  attach(files) {
    this.#notice.clear();
    try {
      this.#attachments.add(files);
    } catch (error) {
      this.#notice.show(error);
    }
  }

  /** Restore a message that the server did not accept, so that the user can edit and resend it. */
  #restoreDraft(files, text) {
    updateStarterVisibility();
    this.#attachments.add(files);
    const draft = find("chat-text");
    draft.value = [text, draft.value].filter(Boolean).join("\n");
  }

  /** Request the answer. Resolves when it starts. */
  async #requestAnswer(conversation, message, signal) {
    const player = await this.#preparePlayer();
    const body = await buildBody([...conversation, message], player !== null);
    const request = startRequest();
    const { id, events } = await stream("v1/chat/completions", body, signal).catch((error) => {
      throw withFieldLabel(error, (field) => getLabel(field, body));
    });
    signal.throwIfAborted();
    if (player) player.ondrained = (underruns) => request.recordUnderruns(underruns);
    const answer = addTurn(find("chat-log"), "Answer");
    const done = showAnswer(events, { answer, request, player, signal });
    this.#answerDone = done.then(({ content, images, reason, error }) => {
      player?.end();
      answer.end(NOTES[reason]);
      if (content || images) {
        conversation.push(message, { role: "assistant", content, ...(images && { images }) });
      }
      if (error && conversation === this.#messages) this.#notice.show(error);
      request.end(id).catch((problem) => this.#notice.show(problem));
    });
  }

  /** Stop all playback. Return the player for the answer, null if speech is off. */
  async #preparePlayer() {
    await this.#player?.stop();
    this.#player = find("chat-speech").checked ? await getPlayer(SAMPLE_RATE) : null;
    await this.#player?.stop();
    return this.#player;
  }
}

/** Build the content parts of a message. */
async function buildContent(files, text) {
  const parts = await Promise.all(files.map(toContentPart));
  return text ? [...parts, { type: "text", text }] : parts;
}

/** Build the body of a chat request. */
async function buildBody(messages, spoken) {
  const system = getInstructions();
  const drawn = find("chat-image").checked;
  return {
    model: await getModelId(),
    messages: system ? [{ role: "system", content: system }, ...messages] : messages,
    max_tokens: getMaxTokens(),
    stream: true,
    modalities: ["text", ...(spoken ? ["audio"] : []), ...(drawn ? ["image"] : [])],
    ...(spoken && { audio: { voice: getVoice(), format: "pcm16", sample_rate: SAMPLE_RATE } }),
    ...(drawn && { image: { partial_images: PREVIEWS } }),
  };
}

/** Return the label of a field of the body that the user knows; for a file, its name. */
function getLabel(field, { messages }) {
  if (field === "max_tokens") return "Max tokens";
  const match = /^messages\.(\d+)\.content\.(\d+)\./.exec(field);
  return match === null ? undefined : getFileName(messages[match[1]].content[match[2]]);
}

/** Notes for an answer that did not end by itself. */
const NOTES = {
  length: "Stopped at Max tokens.",
  stopped: "Stopped.",
  interrupted: "Stopped by the next message.",
  incomplete: "The answer is incomplete.",
};

/** Show and play an answer while it streams. Resolves to its text and images, the reason why it
 * ended, and the error if there was one. */
async function showAnswer(events, { answer, request, player, signal }) {
  let content = "";
  let images;
  let reason = "incomplete";
  try {
    for await (const { choices } of events) {
      signal.throwIfAborted();
      const [{ delta, finish_reason }] = choices;
      reason = finish_reason ?? reason;
      if (delta.content) {
        content += delta.content;
        request.recordText();
        answer.appendText(delta.content);
      }
      if (delta.audio?.data) playDelta(delta.audio.data, player, request);
      if (delta.partial_images) showImages(delta.partial_images, "Preview", answer);
      if (delta.images) {
        images = delta.images;
        request.recordImage();
        showImages(images, "Drawn image", answer);
      }
    }
  } catch (error) {
    if (!signal.aborted) return { content, images, reason: "incomplete", error };
    reason = signal.reason;
  }
  return { content, images, reason };
}

/** Show the image of an answer. */
function showImages([{ image_url: { url } }], alt, answer) {
  const { type, data } = parseDataUri(url);
  answer.showImage(createImageUrl(data, type), alt);
}

/** Play a chunk of speech, and record it for the figures. */
export function playDelta(data, player, request) {
  const samples = decodePcm(data);
  request.recordAudio(samples, player.rate);
  player.push(samples);
}

/** Set up the tab. */
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
    // A message that is rejected returns to the text field, so wait before the next one is sent.
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
  find("chat-new").onclick = () => chat.reset();
  setUpFileInputs(chat, find("chat"));
}

/** Set up the ways to attach files: button, drag and drop, and clipboard. */
function setUpFileInputs(chat, panel) {
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
