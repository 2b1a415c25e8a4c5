/** Stores and deletes voices. */

import { signal } from "@preact/signals";
import { withFieldLabel } from "../server/field_names.ts";
import { request } from "../server/server.ts";
import { type StoredVoice, loadVoices } from "../state/model.ts";
import { clearError, showError } from "../state/notices.ts";
import * as settings from "../state/settings.ts";
import { t } from "../text/index.ts";

/** The text that is stored with the voice as the speaker's consent. */
const CONSENT = "The speaker agrees that this voice is cloned and stored.";

/** What was done last. */
export const voicesState = signal("");
export const isCloning = signal(false);

/** Store the voice of a recording. Resolves to whether that was done. */
export async function cloneVoice(
  recording: File,
  name: string,
  transcript: string,
): Promise<boolean> {
  clearError("voices");
  isCloning.value = true;
  voicesState.value = t().encoding;
  const body = new FormData();
  body.set("audio_sample", recording);
  body.set("name", name);
  body.set("consent", CONSENT);
  if (transcript.trim()) body.set("ref_text", transcript);
  try {
    await request("v1/audio/voices", { method: "POST", body });
    await loadVoices();
    settings.voice.value = name;
    voicesState.value = t().canSpeak(name);
    return true;
  } catch (error) {
    voicesState.value = "";
    const words = t();
    const labels: Record<string, string> = {
      audio_sample: words.theRecording,
      name: words.name,
      ref_text: words.transcriptField,
    };
    showError(
      "voices",
      withFieldLabel(error, (field) => labels[field]),
    );
    return false;
  } finally {
    isCloning.value = false;
  }
}

/** Delete a stored voice. */
export async function deleteVoice({ id, name }: StoredVoice): Promise<void> {
  clearError("voices");
  try {
    await request(`v1/audio/voices/${encodeURIComponent(id)}`, { method: "DELETE" });
    await loadVoices();
    voicesState.value = t().deletedVoice(name);
  } catch (error) {
    showError("voices", error);
  }
}
