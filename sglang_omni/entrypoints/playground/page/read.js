/** A text read aloud, in a voice and a style. */

import { RATE, play } from "./chat.js";
import { find } from "./dom.js";
import { named } from "./field_names.js";
import { beginRequest } from "./last_request.js";
import { Notice } from "./notice.js";
import { playerAt } from "./player.js";
import { servedModel, stream } from "./server.js";
import { chosenVoice } from "./settings.js";

/** What the user calls the fields of the request. */
const FIELDS = { input: "Text", speed: "Playback speed" };

const notice = new Notice("read-notice");
let stopping = new AbortController();

/** What the form asks for, as the body of a request. */
async function body(form) {
  const style = styleIn(form);
  return {
    model: await servedModel(),
    input: find("read-text").value,
    voice: chosenVoice(),
    ...(Object.keys(style).length > 0 && { instructions: style }),
    speed: find("read-speed").valueAsNumber,
    response_format: "pcm",
    sample_rate: RATE,
    stream_format: "sse",
  };
}

/** The style that is asked for; none where the model follows none. */
function styleIn(form) {
  const given = [...new FormData(form)].map(([name, value]) => [name, value.trim()]);
  return Object.fromEntries(given.filter(([, value]) => value));
}

async function read(form, signal) {
  const player = await playerAt(RATE);
  await player.silence();
  const asked = await body(form);
  const request = beginRequest();
  find("read-state").value = "Waiting";
  const { id, events } = await stream("v1/audio/speech", asked, signal).catch((error) => {
    throw named(error, (field) => FIELDS[field]);
  });
  player.ondrained = (gaps) => {
    request.gaps(gaps);
    find("read-state").value = "Done";
  };
  try {
    for await (const event of events) {
      signal.throwIfAborted();
      if (event.type !== "speech.audio.delta") continue;
      find("read-state").value = "Speaking";
      play(event.audio, player, request);
    }
  } finally {
    player.end();
  }
  request.end(id).catch((error) => notice.show(error));
}

async function stop() {
  stopping.abort();
  await (await playerAt(RATE)).silence();
  find("read-state").value = "Stopped";
}

/** Make the tab work. */
export function startReading() {
  const form = find("read-form");
  form.onsubmit = async (event) => {
    event.preventDefault();
    notice.clear();
    stopping = new AbortController();
    find("read-send").disabled = true;
    try {
      await read(form, stopping.signal);
    } catch (error) {
      find("read-state").value = stopping.signal.aborted ? "Stopped" : "Failed";
      if (!stopping.signal.aborted) notice.show(error);
    } finally {
      find("read-send").disabled = false;
    }
  };
  find("read-stop").onclick = () => stop().catch((error) => notice.show(error));
}
