/** The served model and its voices. */

import { signal } from "@preact/signals";
import { get } from "../server/server.ts";
import { isDrawn, voice } from "./settings.ts";

/** What a model can do. A server that does not tell has the values of `UNKNOWN`. */
export interface Capabilities {
  speech_languages: string[];
  speech_instructions: boolean;
  instruction_fields: string[];
  voice_cloning: boolean;
  starter_prompts: string[];
  image_output: boolean;
}

const UNKNOWN: Capabilities = {
  speech_languages: [],
  speech_instructions: true,
  instruction_fields: ["emotion", "dialect", "style", "speed", "pitch", "volume"],
  voice_cloning: true,
  starter_prompts: [],
  image_output: false,
};

/** A voice that a user stored. */
export interface StoredVoice {
  id: string;
  name: string;
  duration_seconds: number;
  has_transcript: boolean;
}

interface VoiceList {
  voices: string[];
  default_voice: string;
  uploaded_voices: StoredVoice[];
  speaker_vectors: boolean;
}

export const modelId = signal("");
export const capabilities = signal<Capabilities>(UNKNOWN);
export const presets = signal<string[]>([]);
export const storedVoices = signal<StoredVoice[]>([]);
export const hasSpeakerNetwork = signal(true);

/** Load the model as `/v1/models` describes it. Returns its id. */
export async function loadModel(): Promise<string> {
  const { data } = await get<{ data: { id: string; capabilities?: Partial<Capabilities> }[] }>(
    "v1/models",
  );
  const [model] = data;
  modelId.value = model?.id ?? "";
  capabilities.value = { ...UNKNOWN, ...model?.capabilities };
  if (!capabilities.value.image_output) isDrawn.value = false;
  return modelId.value;
}

/** Return the id of the served model. */
export const getModelId = async (): Promise<string> => modelId.value || (await loadModel());

/** Load the server's voices. A voice that is no longer there is replaced by the default one. */
export async function loadVoices(): Promise<void> {
  const list = await get<VoiceList>("v1/audio/voices");
  const names = list.uploaded_voices.map(({ name }) => name);
  presets.value = list.voices.filter((name) => !names.includes(name));
  storedVoices.value = list.uploaded_voices;
  hasSpeakerNetwork.value = list.speaker_vectors;
  if (!list.voices.includes(voice.value)) voice.value = list.default_voice;
}
