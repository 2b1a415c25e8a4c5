/** The tab that lists, adds and deletes stored voices. */

import { createButton, createElement, find } from "./dom.js";
import { withFieldLabel } from "./field_names.js";
import { Notice } from "./notice.js";
import { request } from "./server.js";
import { loadVoices } from "./settings.js";

/** Labels of the form's fields. */
const FIELDS = { audio_sample: "The recording", name: "Name", ref_text: "Transcript" };
/** The text that is stored with the voice as the speaker's consent. */
const CONSENT = "The speaker agrees that this voice is cloned and stored.";

const notice = new Notice("voices-notice");

/** Load the voices, and list those that can be deleted. */
export async function showVoices() {
  const { uploaded_voices: stored, speaker_vectors: complete } = await loadVoices();
  const about = stored.length === 0 ? "None are stored. " : "";
  const less = "The checkpoint has no speaker network: a cloned voice resembles its speaker less.";
  find("voices-about").textContent = complete ? about : about + less;
  find("voices-list").replaceChildren(...stored.map(createRow));
}

function createRow(voice) {
  const seconds = `${voice.duration_seconds.toFixed(1)} s`;
  const label = { ariaLabel: `Delete the voice ${voice.name}` };
  return createElement(
    "li",
    {},
    `${voice.name} (${seconds}${voice.has_transcript ? ", with transcript" : ""})`,
    createButton("Delete", () => deleteVoice(voice).catch((error) => notice.show(error)), label),
  );
}

async function deleteVoice(voice) {
  notice.clear();
  await request(`v1/audio/voices/${encodeURIComponent(voice.id)}`, { method: "DELETE" });
  await showVoices();
  find("voices-state").value = `${voice.name} is deleted`;
}

async function cloneVoice(form) {
  const body = new FormData(form);
  body.set("consent", CONSENT);
  if (!body.get("ref_text").trim()) body.delete("ref_text");
  find("voices-state").value = "Encoding the recording";
  const response = await request("v1/audio/voices", { method: "POST", body });
  const { name } = await response.json();
  form.reset();
  await showVoices();
  find("voice").value = name;
  find("voices-state").value = `${name} can speak now`;
}

/** Set up the tab. */
export function startVoices() {
  const form = find("voices-form");
  form.onsubmit = async (event) => {
    event.preventDefault();
    notice.clear();
    find("voices-send").disabled = true;
    try {
      await cloneVoice(form);
    } catch (error) {
      find("voices-state").value = "";
      notice.show(withFieldLabel(error, (field) => FIELDS[field]));
    } finally {
      find("voices-send").disabled = false;
    }
  };
}
