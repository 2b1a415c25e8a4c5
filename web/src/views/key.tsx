/** Asks for the key that the server requires. */

import { useEffect, useRef } from "preact/hooks";
import { keyQuestion, storeKey } from "../server/key.ts";
import { t } from "../text/index.ts";

export function KeyDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  const input = useRef<HTMLInputElement>(null);
  const question = keyQuestion.value;
  const words = t();
  useEffect(() => {
    if (question && !dialog.current?.open) dialog.current?.showModal();
    if (!question) dialog.current?.close();
    if (input.current) input.current.value = "";
  }, [question]);
  return (
    <dialog
      ref={dialog}
      class="key-dialog"
      aria-labelledby="key-title"
      onCancel={() => question?.answer(false)}
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          storeKey(input.current?.value.trim() ?? "");
          question?.answer(true);
        }}
      >
        <h2 id="key-title">{words.keyTitle}</h2>
        <p>{question?.reason}</p>
        <label>
          {words.key}
          <input
            ref={input}
            id="key-input"
            type="password"
            autocomplete="off"
            spellcheck={false}
            required
          />
        </label>
        <p class="hint">{words.keyHint}</p>
        <div class="row">
          <button type="submit" class="main">
            {words.useKey}
          </button>
          <button
            type="button"
            onClick={() => {
              storeKey(null);
              question?.answer(true);
            }}
          >
            {words.forgetKey}
          </button>
          <button type="button" onClick={() => question?.answer(false)}>
            {words.cancel}
          </button>
        </div>
      </form>
    </dialog>
  );
}
