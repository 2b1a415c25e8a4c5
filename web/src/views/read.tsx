/** Reads a text aloud. */

import { useEffect, useState } from "preact/hooks";
import {
  type SpokenPreview,
  isReading,
  previewSpeech,
  readAloud,
  readBody,
  readRecording,
  readSeconds,
  readState,
  stopReading,
} from "../actions/read.ts";
import { toWav } from "../audio/wav.ts";
import { capabilities } from "../state/model.ts";
import { language, t } from "../text/index.ts";
import { IconButton, Notice, VoiceSelect, saveFile } from "./controls.tsx";
import { shownCode } from "./turn.tsx";

/** The pause in typing after which the preview is renewed. */
const DELAY_MS = 300;
const MAX_ROWS = 100;

export function ReadView() {
  const [text, setText] = useState("");
  const words = t();
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const fields = [...form].map(([name, value]) => [name, String(value).trim()] as const);
    const { playback, ...style } = Object.fromEntries(fields.filter(([, value]) => value));
    void readAloud({ text, style, speed: Number(playback) });
  };
  return (
    <form class="panel" onSubmit={submit}>
      <label for="read-text">{words.text}</label>
      <textarea
        id="read-text"
        rows={6}
        required
        value={text}
        onInput={({ currentTarget }) => setText(currentTarget.value)}
      />
      <Languages />
      <Preview text={text} />
      <div class="fields">
        <VoiceSelect id="read-voice" />
        <label>
          {words.playbackSpeed}
          <input
            name="playback"
            type="number"
            min="0.25"
            max="4"
            step="0.05"
            defaultValue="1"
            required
          />
        </label>
      </div>
      {capabilities.value.speech_instructions && <Style />}
      <Notice place="read" id="read-notice" />
      <div class="row">
        <button type="submit" class="main" disabled={isReading.value}>
          {words.readAloud}
        </button>
        <button type="button" onClick={() => void stopReading()}>
          {words.stop}
        </button>
        <output id="read-state">{words.readStates[readState.value] ?? ""}</output>
      </div>
      <Progress />
    </form>
  );
}

function Languages() {
  const codes = capabilities.value.speech_languages;
  if (codes.length === 0) return null;
  const names = new Intl.DisplayNames([language.value], { type: "language" });
  const list = new Intl.ListFormat(language.value).format(
    codes.map((code) => names.of(code) ?? code),
  );
  return <p class="hint">{t().speaksOnly(list)}</p>;
}

function Style() {
  const words = t();
  const fields = [
    ["emotion", words.emotion, words.emotionExample],
    ["dialect", words.dialect, ""],
    ["speed", words.pace, words.paceExample],
    ["pitch", words.pitch, words.pitchExample],
    ["volume", words.loudness, words.loudnessExample],
  ] as const;
  const followed = capabilities.value.instruction_fields;
  return (
    <fieldset>
      <legend>{words.style}</legend>
      {followed.includes("style") && (
        <label>
          {words.styleInWords}
          <input name="style" maxlength={500} placeholder={words.styleExample} />
        </label>
      )}
      <div class="fields">
        {fields
          .filter(([name]) => followed.includes(name))
          .map(([name, label, example]) => (
            <label key={name}>
              {label}
              <input name={name} maxlength={50} placeholder={example} />
            </label>
          ))}
      </div>
    </fieldset>
  );
}

/** How much was played, and the speech as a file. */
function Progress() {
  const words = t();
  const { played, total } = readSeconds.value;
  const recording = readRecording.value;
  const body = readBody.value;
  if (total === 0) return null;
  return (
    <div class="row">
      <progress aria-label={words.readProgress} max={total} value={Math.min(played, total)} />
      <span class="hint">{words.played(Math.min(played, total).toFixed(1), total.toFixed(1))}</span>
      {recording && (
        <IconButton
          icon="download"
          label={words.download}
          onClick={() => saveFile(toWav(recording), "speech.wav")}
        />
      )}
      {body && (
        <IconButton
          icon="code"
          label={words.showCode}
          onClick={() => {
            shownCode.value = { path: "v1/audio/speech", body };
          }}
        />
      )}
    </div>
  );
}

/** What will be spoken for the text. Nothing is requested while it is closed. */
function Preview({ text }: { text: string }) {
  const [isOpen, setOpen] = useState(false);
  const [preview, setPreview] = useState<SpokenPreview>({ text: "" });
  const words = t();
  useEffect(() => {
    if (!isOpen) return undefined;
    const controller = new AbortController();
    const renew = async () => {
      const found = text.trim() ? await previewSpeech(text, controller.signal) : { text: "" };
      setPreview(found);
    };
    const timer = setTimeout(() => {
      renew().catch((error) => {
        if (!controller.signal.aborted) setPreview({ text: error.message });
      });
    }, DELAY_MS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [text, isOpen]);
  const { readings = [], unspoken = [] } = preview;
  return (
    <details id="read-preview" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>{words.spokenPreview}</summary>
      <p id="read-preview-text" role="status">
        {preview.text}
        {unspoken.length > 0 && words.notSpoken(unspoken.join(", "))}
      </p>
      {readings.length > 0 && (
        <div id="read-preview-forms" role="region" aria-label={words.writtenForms} tabindex={0}>
          <table>
            <caption>{words.formsCaption}</caption>
            <thead>
              <tr>
                {[words.written, words.class, words.spoken].map((name) => (
                  <th key={name} scope="col">
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {readings.slice(0, MAX_ROWS).map((reading, index) => (
                <tr key={index}>
                  <td>{reading.written}</td>
                  <td>{reading.class}</td>
                  <td>{reading.spoken}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </details>
  );
}
