/** The frame of the page: its header, its views, and what lies over them. */

import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { stopAnswer } from "../actions/chat.ts";
import { startTalking } from "../actions/voice.ts";
import { isOffline } from "../server/connection.ts";
import { askForKey } from "../server/key.ts";
import { capabilities, loadModel, loadVoices, modelId } from "../state/model.ts";
import { clearError, showError } from "../state/notices.ts";
import { session } from "../state/talk.ts";
import { t } from "../text/index.ts";
import { Code } from "./code.tsx";
import { IconButton, Notice } from "./controls.tsx";
import { ConversationView, focusMessage, newConversation } from "./conversation.tsx";
import { Details } from "./details.tsx";
import { DrawView } from "./draw.tsx";
import { History } from "./history.tsx";
import { KeyDialog } from "./key.tsx";
import { ReadView } from "./read.tsx";
import { Settings } from "./settings.tsx";
import { VoicesView } from "./voices.tsx";

type View = "conversation" | "readAloud" | "draw" | "voices";
type Overlay = "settings" | "history";

const view = signal<View>("conversation");
/** What lies over the page. */
const overlay = signal<Overlay | null>(null);
const WIDE = "(min-width: 70rem)";

/** Load the server's model and voices. */
export async function loadServer(): Promise<void> {
  clearError("page");
  try {
    await loadModel();
    await loadVoices();
    if (view.value === "draw" && !capabilities.value.image_output) view.value = "conversation";
  } catch (error) {
    showError("page", error);
  }
}

export function App() {
  const [isDetailed, setDetailed] = useState(() => matchMedia(WIDE).matches);
  const words = t();
  useEffect(() => {
    const handle = (event: KeyboardEvent) => handleKey(event);
    addEventListener("keydown", handle);
    return () => removeEventListener("keydown", handle);
  }, []);
  // A drawer tells that it is closed after the next one may have been opened.
  const close = (closed: Overlay) => () => {
    if (overlay.value === closed) overlay.value = null;
  };
  return (
    <>
      <SkipLink />
      <Header isDetailed={isDetailed} onDetails={() => setDetailed(!isDetailed)} />
      <p id="away" role="status">
        {isOffline.value ? words.reconnecting : ""}
      </p>
      <Notice place="page" id="notice" />
      <div class={isDetailed ? "columns detailed" : "columns"}>
        <main>
          <Panel name="conversation">
            <ConversationView />
          </Panel>
          <Panel name="readAloud">
            <ReadView />
          </Panel>
          <Panel name="draw">
            <DrawView />
          </Panel>
          <Panel name="voices">
            <VoicesView />
          </Panel>
        </main>
        {isDetailed && <Details />}
      </div>
      <Settings isOpen={overlay.value === "settings"} onClose={close("settings")} />
      <History isOpen={overlay.value === "history"} onClose={close("history")} />
      <Code />
      <KeyDialog />
    </>
  );
}

/** Takes the keyboard past the header; it is shown while it has the focus. */
const SkipLink = () => (
  <a
    class="skip"
    href="#chat-text"
    onClick={(event) => {
      event.preventDefault();
      view.value = "conversation";
      focusMessage();
    }}
  >
    {t().skip}
  </a>
);

function Header({ isDetailed, onDetails }: { isDetailed: boolean; onDetails: () => void }) {
  const words = t();
  const changeKey = async () => {
    if (await askForKey(words.keyAnother)) await loadServer();
  };
  const show = (chosen: Overlay) => () => {
    overlay.value = chosen;
  };
  return (
    <header id="header">
      <IconButton icon="menu" label={words.history} onClick={show("history")} />
      <h1>
        sglang-omni <span id="model">{modelId.value}</span>
      </h1>
      <Tabs />
      <IconButton
        icon="plus"
        label={words.newConversation}
        onClick={() => {
          view.value = "conversation";
          void newConversation();
        }}
      />
      <IconButton icon="settings" label={words.settings} onClick={show("settings")} />
      <IconButton icon="details" label={words.details} pressed={isDetailed} onClick={onDetails} />
      <IconButton icon="key" label={words.key} onClick={() => void changeKey()} />
    </header>
  );
}

function getViews(): View[] {
  const views: View[] = ["conversation", "readAloud", "draw", "voices"];
  return views.filter((name) => name !== "draw" || capabilities.value.image_output);
}

const STEPS: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1 };

function Tabs() {
  const words = t();
  const views = getViews();
  const move = (event: KeyboardEvent, name: View) => {
    const step = STEPS[event.key];
    const at = (views.indexOf(name) + (step ?? 0) + views.length) % views.length;
    const next = event.key === "Home" ? views[0] : event.key === "End" ? views.at(-1) : views[at];
    if (next === undefined || next === name) return;
    event.preventDefault();
    view.value = next;
    document.getElementById(`tab-${next}`)?.focus();
  };
  return (
    <div role="tablist" aria-label={words.views}>
      {views.map((name) => (
        <button
          key={name}
          type="button"
          role="tab"
          id={`tab-${name}`}
          aria-controls={`panel-${name}`}
          aria-selected={view.value === name}
          tabindex={view.value === name ? 0 : -1}
          onClick={() => {
            view.value = name;
          }}
          onKeyDown={(event) => move(event, name)}
        >
          {words[name]}
        </button>
      ))}
    </div>
  );
}

/** A view; those that are not shown keep what was filled in. */
const Panel = ({ name, children }: { name: View; children: ComponentChildren }) => (
  <div
    id={`panel-${name}`}
    class="view"
    role="tabpanel"
    aria-labelledby={`tab-${name}`}
    hidden={view.value !== name}
  >
    {children}
  </div>
);

const ALT_KEYS: Record<string, () => unknown> = {
  KeyN: () => {
    view.value = "conversation";
    return newConversation();
  },
  KeyT: () => {
    view.value = "conversation";
    return session.value ? session.value.stop() : startTalking();
  },
  KeyS: () => {
    overlay.value = "settings";
  },
  KeyH: () => {
    overlay.value = "history";
  },
};

function handleKey(event: KeyboardEvent): void {
  const isTyping = event.target instanceof HTMLElement && event.target.matches("input, textarea");
  const action = event.altKey ? ALT_KEYS[event.code] : undefined;
  if (action) {
    event.preventDefault();
    void action();
  } else if (event.key === "Escape" && overlay.value === null) {
    void stopAnswer();
  } else if (event.key === "/" && !isTyping) {
    event.preventDefault();
    view.value = "conversation";
    focusMessage();
  }
}
