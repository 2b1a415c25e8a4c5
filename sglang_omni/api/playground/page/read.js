/** A text read aloud, in a voice and a manner. */

import { RATE, play } from "./chat.js";
import { find } from "./dom.js";
import { beginRequest } from "./last_request.js";
import { complain, settle } from "./notice.js";
import { playerAt } from "./player.js";
import { servedModel, stream } from "./server.js";
import { chosenVoice } from "./settings.js";

/** The fields of the manner, by their names in the API. */
const MANNER = ["style", "emotion", "dialect", "speed", "pitch", "volume"];

let stopping = new AbortController();

/** What the form asks for, as the body of a request. */
async function body(form) {
  const given = MANNER.map((name) => [name, form.elements[name].value.trim()]);
  const manner = Object.fromEntries(given.filter(([, value]) => value));
  return {
    model: await servedModel(),
    input: find("read-text").value,
    voice: chosenVoice(),
    ...(Object.keys(manner).length > 0 && { instructions: manner }),
    speed: find("read-speed").valueAsNumber,
    response_format: "pcm",
    sample_rate: RATE,
    stream_format: "sse",
  };
}

async function read(form, signal) {
  const player = await playerAt(RATE);
  await player.silence();
  const asked = await body(form);
  const request = beginRequest();
  find("read-state").value = "Waiting";
  const { id, events } = await stream("v1/audio/speech", asked, signal);
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
  request.end(id).catch(complain);
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
    settle();
    stopping = new AbortController();
    find("read-send").disabled = true;
    try {
      await read(form, stopping.signal);
    } catch (error) {
      find("read-state").value = error.name === "AbortError" ? "Stopped" : "Failed";
      complain(error);
    } finally {
      find("read-send").disabled = false;
    }
  };
  find("read-stop").onclick = () => stop().catch(complain);
}
