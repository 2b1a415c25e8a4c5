/** Lists, adds and deletes stored voices. */

import { useRef, useState } from "preact/hooks";
import { cloneVoice, deleteVoice, isCloning, voicesState } from "../actions/clone.ts";
import { hearVoice } from "../actions/read.ts";
import { Recorder } from "../audio/recorder.ts";
import {
  type StoredVoice,
  capabilities,
  hasSpeakerNetwork,
  presets,
  storedVoices,
} from "../state/model.ts";
import { clearError, showError } from "../state/notices.ts";
import { microphone } from "../state/settings.ts";
import { t } from "../text/index.ts";
import { IconButton, Notice } from "./controls.tsx";

export function VoicesView() {
  const words = t();
  const { voice_cloning } = capabilities.value;
  return (
    <div class="panel">
      <h2>{words.presets}</h2>
      <ul class="voices">
        {presets.value.map((name) => (
          <li key={name}>
            {name}
            <HearButton name={name} />
          </li>
        ))}
      </ul>
      {(voice_cloning || storedVoices.value.length > 0) && <StoredVoices />}
      {voice_cloning && <CloneForm />}
    </div>
  );
}

function StoredVoices() {
  const words = t();
  return (
    <>
      <h2>{words.yourVoices}</h2>
      <p class="hint">
        {storedVoices.value.length === 0 && words.noneVoices}
        {!hasSpeakerNetwork.value && words.noSpeakerNetwork}
      </p>
      <ul id="voices-list" class="voices" aria-label={words.stored}>
        {storedVoices.value.map((voice) => (
          <VoiceRow key={voice.id} voice={voice} />
        ))}
      </ul>
    </>
  );
}

const HearButton = ({ name }: { name: string }) => (
  <IconButton icon="play" label={t().hearVoice(name)} onClick={() => void hearVoice(name)} />
);

function VoiceRow({ voice }: { voice: StoredVoice }) {
  const words = t();
  const { name, duration_seconds, has_transcript } = voice;
  const remove = () => {
    if (confirm(words.confirmDelete(name))) void deleteVoice(voice);
  };
  return (
    <li>
      {name} ({words.voiceLength(duration_seconds.toFixed(1), has_transcript)})
      <span class="row">
        <HearButton name={name} />
        <IconButton icon="trash" label={words.deleteVoice(name)} onClick={remove} />
      </span>
    </li>
  );
}

function CloneForm() {
  const [recorded, setRecorded] = useState<{ file: File; seconds: number } | null>(null);
  const words = t();
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const data = new FormData(form);
    const chosen = data.get("audio_sample") as File;
    const recording = recorded?.file ?? (chosen.name ? chosen : null);
    if (recording === null) return showError("voices", new Error(words.needsRecording));
    const isDone = await cloneVoice(
      recording,
      String(data.get("name")),
      String(data.get("ref_text")),
    );
    if (!isDone) return undefined;
    form.reset();
    setRecorded(null);
    return undefined;
  };
  return (
    <form aria-labelledby="clone-title" onSubmit={(event) => void submit(event)}>
      <h2 id="clone-title">{words.cloneTitle}</h2>
      <label>
        {words.recording}
        <input
          type="file"
          name="audio_sample"
          accept="audio/*"
          onChange={() => setRecorded(null)}
        />
      </label>
      <div class="row">
        <RecordButton onRecorded={(file, seconds) => setRecorded({ file, seconds })} />
        {recorded && <span class="hint">{words.recorded(recorded.seconds.toFixed(1))}</span>}
      </div>
      <label>
        {words.name} <input name="name" maxlength={64} required />
      </label>
      <label>
        {words.transcript} <input name="ref_text" maxlength={1000} />
      </label>
      <label class="check">
        <input type="checkbox" required /> {words.consent}
      </label>
      <Notice place="voices" id="voices-notice" />
      <div class="row">
        <button type="submit" class="main" disabled={isCloning.value}>
          {words.clone}
        </button>
        <output id="voices-state">{voicesState.value}</output>
      </div>
    </form>
  );
}

function RecordButton({ onRecorded }: { onRecorded: (file: File, seconds: number) => void }) {
  const recorder = useRef<Recorder | null>(null);
  const [heard, setHeard] = useState<{ seconds: number; level: number } | null>(null);
  const words = t();
  const start = async () => {
    clearError("voices");
    recorder.current = new Recorder();
    setHeard({ seconds: 0, level: 0 });
    try {
      await recorder.current.start(microphone.value, (seconds, level) =>
        setHeard({ seconds, level }),
      );
    } catch (error) {
      setHeard(null);
      showError("voices", error);
    }
  };
  const stop = async () => {
    const seconds = heard?.seconds ?? 0;
    setHeard(null);
    const file = await recorder.current?.stop("recording.wav");
    if (file) onRecorded(file, seconds);
  };
  if (heard === null) {
    return (
      <button type="button" onClick={() => void start()}>
        {words.record}
      </button>
    );
  }
  return (
    <>
      <button type="button" onClick={() => void stop()}>
        {words.stopRecording(heard.seconds.toFixed(1))}
      </button>
      <meter aria-label={words.level} min={0} max={1} value={heard.level} />
    </>
  );
}
