/** A turn of the conversation and what can be done with it. */

import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { answerAgain, editTurn, sendResult } from "../actions/chat.ts";
import { toWav } from "../audio/wav.ts";
import { type AttachedFile, type Call, type Turn, conversation } from "../state/conversation.ts";
import { session } from "../state/talk.ts";
import { t } from "../text/index.ts";
import { CopyButton, IconButton, saveFile } from "./controls.tsx";
import { Markdown } from "./markdown.tsx";

/** The request that is shown as code: its route and its body. */
export const shownCode = signal<{ path: string; body: object } | null>(null);

export function TurnView({ turn }: { turn: Turn }) {
  const isUser = turn.role === "user";
  const words = t();
  const image = turn.image.value;
  return (
    <article class={isUser ? "user" : "answer"} aria-busy={turn.isBusy.value}>
      <h2>{isUser ? words.you : words.answer}</h2>
      {turn.files.map((file, index) => (
        <Attached key={index} file={file} />
      ))}
      {turn.reasoning.value && (
        <details class="reasoning">
          <summary>{words.reasoning}</summary>
          <p>{turn.reasoning.value}</p>
        </details>
      )}
      {isUser ? <p class="said">{turn.text.value}</p> : <Markdown text={turn.text.value} />}
      {turn.calls.value.map((call) => (
        <CallView key={call.id} turn={turn} call={call} />
      ))}
      {image && (
        <img
          class="drawn"
          src={image.url}
          alt={image.isFinished ? words.drawnImage : words.preview}
        />
      )}
      {turn.replayUrl.value && (
        <audio controls autoplay src={turn.replayUrl.value} aria-label={words.replay} />
      )}
      {turn.note.value && <p class="hint">{turn.note.value}</p>}
      {!turn.isBusy.value && <Actions turn={turn} />}
    </article>
  );
}

function Attached({ file: { name, kind, url } }: { file: AttachedFile }) {
  if (url === null) return <p class="hint">{t().notKept(name)}</p>;
  if (kind === "image") return <img src={url} alt={name} />;
  if (kind === "audio") return <audio src={url} controls aria-label={name} />;
  return <video src={url} controls aria-label={name} />;
}

function Actions({ turn }: { turn: Turn }) {
  const words = t();
  const isLast = conversation.value.turns.value.at(-1) === turn;
  // What a session has been told cannot be changed.
  const isEditable = session.value === null;
  const { recording, body } = turn;
  const replay = () => {
    if (recording) turn.replayUrl.value ??= URL.createObjectURL(toWav(recording));
  };
  return (
    <div class="actions">
      <CopyButton text={() => turn.text.value} />
      {turn.role === "user" && isEditable && (
        <IconButton icon="edit" label={words.edit} onClick={() => void editTurn(turn)} />
      )}
      {turn.role === "assistant" && isLast && isEditable && (
        <IconButton icon="again" label={words.regenerate} onClick={() => void answerAgain(turn)} />
      )}
      {recording && <IconButton icon="play" label={words.replay} onClick={replay} />}
      {recording && (
        <IconButton
          icon="download"
          label={words.download}
          onClick={() => saveFile(toWav(recording), "answer.wav")}
        />
      )}
      {body && (
        <IconButton
          icon="code"
          label={words.showCode}
          onClick={() => {
            shownCode.value = { path: "v1/chat/completions", body };
          }}
        />
      )}
    </div>
  );
}

function CallView({ turn, call }: { turn: Turn; call: Call }) {
  const [result, setResult] = useState("");
  const words = t();
  return (
    <form
      class="call"
      onSubmit={(event) => {
        event.preventDefault();
        void sendResult(turn, call, result);
      }}
    >
      <h3>{words.toolCall(call.name)}</h3>
      <pre tabindex={0}>
        <code>{call.arguments}</code>
      </pre>
      {call.result === null ? (
        <>
          <label>
            {words.toolResult}
            <input
              value={result}
              required
              onInput={({ currentTarget }) => setResult(currentTarget.value)}
            />
          </label>
          <button type="submit" disabled={turn.isBusy.value}>
            {words.sendResult}
          </button>
        </>
      ) : (
        <p class="hint">{call.result}</p>
      )}
    </form>
  );
}
