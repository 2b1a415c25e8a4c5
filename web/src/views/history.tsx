/** The conversations that this browser keeps. */

import { useState } from "preact/hooks";
import { startConversation } from "../actions/chat.ts";
import { conversation } from "../state/conversation.ts";
import {
  type StoredConversation,
  deleteConversation,
  deleteConversations,
  findConversations,
  openConversation,
  renameConversation,
  stored,
} from "../state/history.ts";
import { language, t } from "../text/index.ts";
import { Drawer, IconButton, saveFile } from "./controls.tsx";
import { newConversation } from "./conversation.tsx";

export function History({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const [query, setQuery] = useState("");
  const words = t();
  const found = findConversations(query);
  return (
    <Drawer title={words.history} isOpen={isOpen} onClose={onClose}>
      <button
        type="button"
        class="main"
        onClick={() => {
          onClose();
          void newConversation();
        }}
      >
        {words.newConversation}
      </button>
      <label>
        {words.search}
        <input
          type="search"
          value={query}
          onInput={({ currentTarget }) => setQuery(currentTarget.value)}
        />
      </label>
      {found.length === 0 && (
        <p class="hint">{stored.value.length === 0 ? words.noneStored : words.noneFound}</p>
      )}
      <ul class="history" aria-label={words.conversations}>
        {found.map((one) => (
          <Row key={one.id} one={one} onClose={onClose} />
        ))}
      </ul>
      {stored.value.length > 0 && (
        <div class="row">
          <button type="button" onClick={exportAll}>
            {words.exportAll}
          </button>
          <button
            type="button"
            onClick={() => {
              if (confirm(words.confirmForgetAll)) deleteConversations();
            }}
          >
            {words.forgetAll}
          </button>
        </div>
      )}
    </Drawer>
  );
}

function exportAll(): void {
  const text = JSON.stringify(stored.value, null, 2);
  saveFile(new Blob([text], { type: "application/json" }), "conversations.json");
}

function Row({ one, onClose }: { one: StoredConversation; onClose: () => void }) {
  const [title, setTitle] = useState<string | null>(null);
  const words = t();
  const shown = one.title || words.untitled;
  const open = async () => {
    if (one.id !== conversation.value.id) {
      openConversation(one);
      await startConversation(conversation.value);
    }
    onClose();
  };
  if (title !== null) {
    return (
      <li>
        <form
          class="row"
          onSubmit={(event) => {
            event.preventDefault();
            renameConversation(one.id, title.trim() || shown);
            setTitle(null);
          }}
        >
          <input
            aria-label={words.newTitle}
            value={title}
            onInput={({ currentTarget }) => setTitle(currentTarget.value)}
          />
          <button type="submit">{words.renameShort}</button>
        </form>
      </li>
    );
  }
  return (
    <li aria-current={one.id === conversation.value.id}>
      <button
        type="button"
        class="plain"
        aria-label={words.open(shown)}
        onClick={() => void open()}
      >
        <span>{shown}</span>
        <small>{new Date(one.changed).toLocaleString(language.value)}</small>
      </button>
      <IconButton icon="edit" label={words.rename(shown)} onClick={() => setTitle(shown)} />
      <IconButton
        icon="trash"
        label={words.deleteOne(shown)}
        onClick={() => {
          if (confirm(words.confirmDelete(shown))) deleteConversation(one.id);
        }}
      />
    </li>
  );
}
