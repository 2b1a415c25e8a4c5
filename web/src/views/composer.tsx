/** The message being written: text, files, and how the answer is to be. */

import { useSignalEffect } from "@preact/signals";
import { useRef, useState } from "preact/hooks";
import { draft, isSending, sendDraft, stopAnswer } from "../actions/chat.ts";
import { attach } from "../actions/files.ts";
import { startTalking } from "../actions/voice.ts";
import { isAnswering } from "../state/conversation.ts";
import { draftFiles } from "../state/files.ts";
import { capabilities } from "../state/model.ts";
import { isDrawn, isSpoken } from "../state/settings.ts";
import { session } from "../state/talk.ts";
import { t } from "../text/index.ts";
import { Camera } from "./camera.tsx";
import { Check, IconButton, Notice, VoiceSelect } from "./controls.tsx";

const MAX_ROWS = 8;

export function Composer() {
  const picker = useRef<HTMLInputElement>(null);
  const text = useRef<HTMLTextAreaElement>(null);
  const [isCameraOpen, setCameraOpen] = useState(false);
  const words = t();
  useSignalEffect(() => {
    const lines = draft.value.split("\n").length;
    if (text.current) text.current.rows = Math.min(Math.max(lines, 1), MAX_ROWS);
  });
  const submit = (event: Event) => {
    event.preventDefault();
    void sendDraft();
  };
  return (
    <form id="composer" onSubmit={submit}>
      <ul id="chat-files" aria-label={words.attached}>
        {draftFiles.value.map((file, index) => (
          <FileRow key={index} file={file} />
        ))}
      </ul>
      <Notice place="conversation" id="chat-notice" />
      <textarea
        ref={text}
        id="chat-text"
        rows={1}
        aria-label={words.message}
        placeholder={words.message}
        title={words.messageHint}
        value={draft.value}
        onInput={({ currentTarget }) => {
          draft.value = currentTarget.value;
        }}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          event.currentTarget.form?.requestSubmit();
        }}
      />
      <div class="composer-row">
        <IconButton
          id="chat-attach"
          icon="attach"
          label={words.attach}
          onClick={() => picker.current?.click()}
        />
        <input
          ref={picker}
          id="chat-picker"
          type="file"
          multiple
          hidden
          accept="image/*,audio/*,video/*"
          onChange={({ currentTarget }) => {
            attach(currentTarget.files ?? []);
            currentTarget.value = "";
          }}
        />
        {navigator.mediaDevices && (
          <IconButton icon="camera" label={words.camera} onClick={() => setCameraOpen(true)} />
        )}
        <VoiceSelect id="voice" onChange={() => session.value?.change()} />
        {!session.value && <Check label={words.speak} value={isSpoken} />}
        {capabilities.value.image_output && <Check label={words.drawAnswer} value={isDrawn} />}
        <span class="spring" />
        {!session.value && isAnswering.value && (
          <button type="button" onClick={() => void stopAnswer()}>
            {words.stop}
          </button>
        )}
        {!session.value && (
          <button type="button" id="talk-start" onClick={() => void startTalking()}>
            {words.talk}
          </button>
        )}
        <button type="submit" id="chat-send" class="main" disabled={isSending.value}>
          {words.send}
        </button>
      </div>
      <Camera isOpen={isCameraOpen} onClose={() => setCameraOpen(false)} />
    </form>
  );
}

function FileRow({ file }: { file: File }) {
  const remove = () => {
    draftFiles.value = draftFiles.value.filter((other) => other !== file);
    document.getElementById("chat-attach")?.focus();
  };
  return (
    <li>
      {file.name}
      <IconButton icon="close" label={t().removeFile(file.name)} onClick={remove} />
    </li>
  );
}
