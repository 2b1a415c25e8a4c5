/** The conversation: its turns, and what is said next. */

import { useEffect, useRef, useState } from "preact/hooks";
import { draft, sendDraft, startConversation } from "../actions/chat.ts";
import { attach } from "../actions/files.ts";
import { Conversation, conversation, isEmpty } from "../state/conversation.ts";
import { capabilities } from "../state/model.ts";
import { session } from "../state/talk.ts";
import { t } from "../text/index.ts";
import { Composer } from "./composer.tsx";
import { TurnView } from "./turn.tsx";
import { CaptionLine, VoicePanel } from "./voice_panel.tsx";

/** Distance to the end in pixels within which the log begins to follow again. */
const NEAR = 120;

/** Start an empty conversation, and write its first message. */
export async function newConversation(): Promise<void> {
  await startConversation(new Conversation());
  focusMessage();
}

/** Put the focus on the message, as soon as it is shown. */
export function focusMessage(): void {
  requestAnimationFrame(() => document.getElementById("chat-text")?.focus());
}

export function ConversationView() {
  const [isDropping, setDropping] = useState(false);
  const drop = {
    onPaste: ({ clipboardData }: ClipboardEvent) => {
      if (clipboardData && clipboardData.files.length > 0) attach(clipboardData.files);
    },
    onDragOver: (event: DragEvent) => {
      event.preventDefault();
      setDropping(true);
    },
    onDragLeave: () => setDropping(false),
    onDrop: (event: DragEvent) => {
      event.preventDefault();
      setDropping(false);
      attach(event.dataTransfer?.files ?? []);
    },
  };
  return (
    <div id="chat" class={isDropping ? "dropping" : ""} {...drop}>
      <Log />
      <CaptionLine />
      {session.value && <VoicePanel />}
      <Composer />
    </div>
  );
}

function Log() {
  const log = useRef<HTMLDivElement>(null);
  /** Whether the log follows what is added: until the user scrolls up. */
  const isFollowing = useRef(true);
  const lastTop = useRef(0);
  const words = t();
  useEffect(() => {
    const element = log.current;
    if (element === null) return undefined;
    const follow = () => {
      if (isFollowing.current) element.scrollTo({ top: element.scrollHeight });
    };
    const observer = new MutationObserver(follow);
    observer.observe(element, { childList: true, subtree: true, characterData: true });
    // Images have their height once they are loaded.
    element.addEventListener("load", follow, true);
    // Captions, attached files and a keyboard on the screen take their room from the log.
    const resized = new ResizeObserver(follow);
    resized.observe(element);
    return () => {
      observer.disconnect();
      resized.disconnect();
    };
  }, []);
  return (
    <div
      ref={log}
      id="chat-log"
      class="log"
      role="log"
      aria-label={words.conversation}
      tabindex={0}
      onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
        if (scrollTop < lastTop.current) isFollowing.current = false;
        if (scrollHeight - scrollTop - clientHeight < NEAR) isFollowing.current = true;
        lastTop.current = scrollTop;
      }}
    >
      {isEmpty.value && <Welcome />}
      {conversation.value.turns.value.map((turn) => (
        <TurnView key={turn.key} turn={turn} />
      ))}
    </div>
  );
}

function Welcome() {
  const words = t();
  const prompts = capabilities.value.starter_prompts;
  const send = (prompt: string) => {
    draft.value = prompt;
    void sendDraft();
  };
  return (
    <div class="welcome">
      <h2>{words.emptyTitle}</h2>
      <p>{words.emptyText}</p>
      {prompts.length > 0 && (
        <>
          <h3 id="starters-title">{words.tryOne}</h3>
          <div class="starters" role="group" aria-labelledby="starters-title">
            {prompts.map((prompt) => (
              <button key={prompt} type="button" onClick={() => send(prompt)}>
                {prompt}
              </button>
            ))}
          </div>
        </>
      )}
    </div>
  );
}
