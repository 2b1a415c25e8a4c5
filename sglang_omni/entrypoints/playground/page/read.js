/** The tab that reads a text aloud, in a voice and a style. */

import { SAMPLE_RATE, playDelta } from "./chat.js";
import { find } from "./dom.js";
import { withFieldLabel } from "./field_names.js";
import { startRequest } from "./last_request.js";
import { Notice } from "./notice.js";
import { getPlayer } from "./player.js";
import { startPreview } from "./preview.js";
import { getModelId, stream } from "./server.js";
import { getVoice } from "./settings.js";

/** Labels of the request's fields. */
const FIELDS = { input: "Text", speed: "Playback speed" };

const notice = new Notice("read-notice");
let abortController = new AbortController();

/** Build the body of the request from the form. */
async function buildBody(form) {
  const style = readStyle(form);
  return {
    model: await getModelId(),
    input: find("read-text").value,
    voice: getVoice(),
    ...(Object.keys(style).length > 0 && { instructions: style }),
    speed: find("read-speed").valueAsNumber,
    response_format: "pcm",
    sample_rate: SAMPLE_RATE,
    stream_format: "sse",
  };
}

/** Return the style fields that are filled in; empty if the model supports no style. */
function readStyle(form) {
  const fields = [...new FormData(form)].map(([name, value]) => [name, value.trim()]);
  return Object.fromEntries(fields.filter(([, value]) => value));
}

async function readAloud(form, signal) {
  const player = await getPlayer(SAMPLE_RATE);
  await player.stop();
  const requestBody = await buildBody(form);
  const request = startRequest();
  find("read-state").value = "Waiting";
  const { id, events } = await stream("v1/audio/speech", requestBody, signal).catch((error) => {
    throw withFieldLabel(error, (field) => FIELDS[field]);
  });
  player.ondrained = (underruns) => {
    request.recordUnderruns(underruns);
    find("read-state").value = "Done";
  };
  try {
    for await (const event of events) {
      signal.throwIfAborted();
      if (event.type !== "speech.audio.delta") continue;
      find("read-state").value = "Speaking";
      playDelta(event.audio, player, request);
    }
  } finally {
    player.end();
  }
  request.end(id).catch((error) => notice.show(error));
}

async function stop() {
  abortController.abort();
  await (await getPlayer(SAMPLE_RATE)).stop();
  find("read-state").value = "Stopped";
}

/** Set up the tab. */
export function startReading() {
  startPreview();
  const form = find("read-form");
  form.onsubmit = async (event) => {
    event.preventDefault();
    notice.clear();
    abortController = new AbortController();
    find("read-send").disabled = true;
    try {
      await readAloud(form, abortController.signal);
    } catch (error) {
      find("read-state").value = abortController.signal.aborted ? "Stopped" : "Failed";
      if (!abortController.signal.aborted) notice.show(error);
    } finally {
      find("read-send").disabled = false;
    }
  };
  find("read-stop").onclick = () => stop().catch((error) => notice.show(error));
}
