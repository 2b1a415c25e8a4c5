/** Voices that the user stores: what there is, one more, one less. */

import { button, element, find } from "./dom.js";
import { named } from "./field_names.js";
import { Notice } from "./notice.js";
import { request } from "./server.js";
import { offerVoices } from "./settings.js";

/** What the user calls the fields of the form. */
const FIELDS = { audio_sample: "The recording", name: "Name", ref_text: "Transcript" };
/** What is kept with the voice as the speaker's consent. */
const CONSENT = "The speaker agrees that this voice is cloned and stored.";

const notice = new Notice("voices-notice");

/** Ask for the voices, and show those that can be deleted. */
export async function showVoices() {
  const { uploaded_voices: stored, speaker_vectors: complete } = await offerVoices();
  const about = stored.length === 0 ? "None are stored. " : "";
  const less = "The checkpoint has no speaker network: a cloned voice resembles its speaker less.";
  find("voices-about").textContent = complete ? about : about + less;
  find("voices-list").replaceChildren(...stored.map(row));
}

function row(voice) {
  const seconds = `${voice.duration_seconds.toFixed(1)} s`;
  const label = { ariaLabel: `Delete the voice ${voice.name}` };
  return element(
    "li",
    {},
    `${voice.name} (${seconds}${voice.has_transcript ? ", with its words" : ""})`,
    button("Delete", () => remove(voice).catch((error) => notice.show(error)), label),
  );
}

async function remove(voice) {
  notice.clear();
  await request(`v1/audio/voices/${encodeURIComponent(voice.id)}`, { method: "DELETE" });
  await showVoices();
  find("voices-state").value = `${voice.name} is deleted`;
}

async function clone(form) {
  const body = new FormData(form);
  body.set("consent", CONSENT);
  if (!body.get("ref_text").trim()) body.delete("ref_text");
  find("voices-state").value = "Listening to the recording";
  const reply = await request("v1/audio/voices", { method: "POST", body });
  const { name } = await reply.json();
  form.reset();
  await showVoices();
  find("voice").value = name;
  find("voices-state").value = `${name} can speak now`;
}

/** Make the tab work. */
export function startVoices() {
  const form = find("voices-form");
  form.onsubmit = async (event) => {
    event.preventDefault();
    notice.clear();
    find("voices-send").disabled = true;
    try {
      await clone(form);
    } catch (error) {
      find("voices-state").value = "";
      notice.show(named(error, (field) => FIELDS[field]));
    } finally {
      find("voices-send").disabled = false;
    }
  };
}
