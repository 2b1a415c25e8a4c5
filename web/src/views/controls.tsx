/** Controls that several views use. */

import type { Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { presets, storedVoices } from "../state/model.ts";
import { type Place, notices } from "../state/notices.ts";
import { voice } from "../state/settings.ts";
import { t } from "../text/index.ts";
import { Icon, type IconName } from "./icons.tsx";

interface IconButtonProps {
  icon: IconName;
  label: string;
  onClick: () => void;
  pressed?: boolean;
  disabled?: boolean;
  id?: string;
}

/** A button that shows an icon alone. */
export const IconButton = ({ icon, label, onClick, pressed, disabled, id }: IconButtonProps) => (
  <button
    type="button"
    class="icon-button"
    aria-label={label}
    title={label}
    onClick={onClick}
    {...(id && { id })}
    {...(pressed !== undefined && { "aria-pressed": pressed })}
    {...(disabled !== undefined && { disabled })}
  >
    <Icon name={icon} />
  </button>
);

/** The error of a place. It takes the user's eye to it. */
export function Notice({ place, id }: { place: Place; id: string }) {
  const element = useRef<HTMLParagraphElement>(null);
  const message = notices[place].value;
  useEffect(() => {
    if (message) element.current?.scrollIntoView({ block: "nearest" });
  }, [message]);
  // A screen reader announces text only if the element existed before.
  return (
    <p ref={element} id={id} class="notice" role="alert" hidden={!message}>
      {message}
    </p>
  );
}

/** The choice of the voice. */
export const VoiceSelect = ({ id, onChange }: { id: string; onChange?: () => void }) => (
  <label class="voice-select">
    {t().voice}
    <select
      id={id}
      value={voice.value}
      onChange={({ currentTarget }) => {
        voice.value = currentTarget.value;
        onChange?.();
      }}
    >
      <VoiceGroup label={t().presets} names={presets.value} />
      <VoiceGroup label={t().yourVoices} names={storedVoices.value.map(({ name }) => name)} />
    </select>
  </label>
);

const VoiceGroup = ({ label, names }: { label: string; names: string[] }) =>
  names.length === 0 ? null : (
    <optgroup label={label}>
      {names.map((name) => (
        <option key={name} value={name} selected={name === voice.value}>
          {name}
        </option>
      ))}
    </optgroup>
  );

interface TextSettingProps {
  label: string;
  value: Signal<string>;
  placeholder?: string;
  numeric?: boolean;
  rows?: number;
  id?: string;
}

/** A field whose text is a setting. */
export function TextSetting({ label, value, placeholder, numeric, rows, id }: TextSettingProps) {
  const props = {
    value: value.value,
    ...(id && { id }),
    ...(placeholder && { placeholder }),
    onInput: ({ currentTarget }: { currentTarget: { value: string } }) => {
      value.value = currentTarget.value;
    },
  };
  return (
    <label>
      {label}
      {rows ? (
        <textarea rows={rows} {...props} />
      ) : (
        <input {...(numeric && { inputMode: "decimal" as const })} {...props} />
      )}
    </label>
  );
}

interface CheckProps {
  label: string;
  value: Signal<boolean>;
  onChange?: () => void;
}

/** A setting that is on or off. */
export const Check = ({ label, value, onChange }: CheckProps) => (
  <label class="check">
    <input
      type="checkbox"
      checked={value.value}
      onChange={({ currentTarget }) => {
        value.value = currentTarget.checked;
        onChange?.();
      }}
    />{" "}
    {label}
  </label>
);

interface DrawerProps {
  title: string;
  isOpen: boolean;
  onClose: () => void;
  children: ComponentChildren;
  wide?: boolean;
}

/** A dialog over the page. Escape closes it, and the focus returns to where it was. */
export function Drawer({ title, isOpen, onClose, children, wide = false }: DrawerProps) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = element.current;
    if (isOpen && !dialog?.open) dialog?.showModal();
    if (!isOpen && dialog?.open) dialog.close();
  }, [isOpen]);
  return (
    <dialog
      ref={element}
      class={wide ? "wide-dialog" : "drawer"}
      aria-label={title}
      onClose={onClose}
      onClick={({ target }) => {
        if (target === element.current) onClose();
      }}
    >
      {isOpen && (
        <div class="drawer-content">
          <header>
            <h2>{title}</h2>
            <IconButton icon="close" label={t().close} onClick={onClose} />
          </header>
          {children}
        </div>
      )}
    </dialog>
  );
}

/** A button that copies a text. */
export function CopyButton({ text }: { text: () => string }) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    await writeClipboard(text());
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return (
    <IconButton icon="copy" label={isDone ? t().copied : t().copy} onClick={() => void copy()} />
  );
}

/** Copy a text. Browsers offer the clipboard over https, and a command of old everywhere. */
async function writeClipboard(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = document.createElement("textarea");
  field.value = text;
  // Within the dialog that is open, if one is: nothing else can have the focus.
  (document.querySelector("dialog[open]") ?? document.body).append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
  return undefined;
}

/** Save a file under a name. */
export function saveFile(data: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(data);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
