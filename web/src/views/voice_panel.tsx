/** The state of a conversation by voice, and its controls. */

import { useEffect, useRef } from "preact/hooks";
import { mute } from "../actions/voice.ts";
import { conversation } from "../state/conversation.ts";
import { isPushToTalk } from "../state/settings.ts";
import { isMuted, level, session, talkState } from "../state/talk.ts";
import { t } from "../text/index.ts";
import { Check, IconButton } from "./controls.tsx";
import { makeHoldable } from "./push_button.ts";

/** Characters of the captions before what is heard. */
const BEFORE = 60;
const AFTER = 60;

export function VoicePanel() {
  const words = t();
  const state = talkState.value;
  return (
    <section id="talk" aria-label={words.talkTitle}>
      <div class={`orb ${state}`} aria-hidden="true">
        <svg viewBox="-50 -50 100 100">
          <circle class="halo" r={28 + 20 * level.value} />
          <circle class="core" r="26" />
        </svg>
      </div>
      <div class="talk-controls">
        <output id="talk-state">{words.states[state]}</output>
        <meter aria-label={words.level} min={0} max={1} value={level.value} />
        <p class="hint">{isPushToTalk.value ? words.pushHint : words.talkHint}</p>
        <div class="row">
          {isPushToTalk.value && <PushButton />}
          <IconButton
            icon={isMuted.value ? "muted" : "microphone"}
            label={words.mute}
            pressed={isMuted.value}
            onClick={() => mute(!isMuted.value)}
          />
          <Check
            label={words.pushToTalk}
            value={isPushToTalk}
            onChange={() => session.value?.change()}
          />
          <button type="button" id="talk-stop" onClick={() => void session.value?.stop()}>
            {words.endTalk}
          </button>
        </div>
      </div>
    </section>
  );
}

function PushButton() {
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (button.current === null) return;
    makeHoldable(button.current, {
      press: () => session.value?.press(),
      release: () => session.value?.release(),
    });
  }, []);
  return (
    <button ref={button} type="button" id="talk-push" class="main" aria-pressed="false">
      {t().holdToTalk}
    </button>
  );
}

/** The words that are heard now, and those around them. */
export function CaptionLine() {
  const turn = conversation.value.turns.value.find(({ heard }) => heard.value !== null);
  const heard = turn?.heard.value ?? 0;
  const text = turn?.text.value ?? "";
  const start = heard > BEFORE ? text.indexOf(" ", heard - BEFORE) + 1 : 0;
  return (
    <p id="captions" aria-hidden="true" hidden={!turn}>
      <b>{text.slice(start, heard)}</b>
      {text.slice(heard, heard + AFTER)}
    </p>
  );
}
