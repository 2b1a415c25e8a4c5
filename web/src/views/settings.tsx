/** The settings of every answer. */

import { useEffect, useState } from "preact/hooks";
import { listMicrophones } from "../audio/microphone.ts";
import * as settings from "../state/settings.ts";
import { session } from "../state/talk.ts";
import { LANGUAGES, type Language, language, setLanguage, t } from "../text/index.ts";
import { Check, Drawer, TextSetting } from "./controls.tsx";

export function Settings({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const words = t();
  const close = () => {
    session.value?.change();
    onClose();
  };
  return (
    <Drawer title={words.settings} isOpen={isOpen} onClose={close}>
      <div class="fields">
        <TextSetting
          label={words.instructions}
          value={settings.instructions}
          placeholder={words.instructionsExample}
          rows={3}
        />
        <TextSetting label={words.maxTokens} value={settings.maxTokens} numeric />
        <TextSetting
          label={words.temperature}
          value={settings.temperature}
          placeholder={words.auto}
          numeric
        />
        <TextSetting label={words.topP} value={settings.topP} placeholder={words.auto} numeric />
        <TextSetting label={words.topK} value={settings.topK} placeholder={words.auto} numeric />
        <Check label={words.thinking} value={settings.isThinking} />
        <TextSetting label={words.tools} value={settings.tools} placeholder="[]" rows={3} />
      </div>
      <h3>{words.talk}</h3>
      <div class="fields">
        <Check label={words.pushToTalk} value={settings.isPushToTalk} />
        <TextSetting label={words.speed} value={settings.speed} numeric id="talk-speed" />
        <Volume />
        <MicrophoneSelect />
      </div>
      <h3>{words.shortcuts}</h3>
      <dl class="shortcuts">
        {words.shortcutList.map(([keys, meaning]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
      <LanguageSelect />
    </Drawer>
  );
}

const Volume = () => (
  <label>
    {t().volume}
    <input
      type="range"
      min={0}
      max={1}
      step={0.05}
      value={settings.volume.value}
      onInput={({ currentTarget }) => {
        settings.volume.value = currentTarget.valueAsNumber;
      }}
    />
  </label>
);

function MicrophoneSelect() {
  const [devices, setDevices] = useState<MediaDeviceInfo[]>([]);
  useEffect(() => {
    listMicrophones().then(setDevices, () => setDevices([]));
  }, []);
  return (
    <label>
      {t().microphone}
      <select
        value={settings.microphone.value}
        onChange={({ currentTarget }) => {
          settings.microphone.value = currentTarget.value;
        }}
      >
        <option value="">{t().auto}</option>
        {devices.map(({ deviceId, label }, index) => (
          <option key={deviceId} value={deviceId}>
            {label || `${t().microphone} ${index + 1}`}
          </option>
        ))}
      </select>
    </label>
  );
}

const LanguageSelect = () => (
  <label>
    {t().language}
    <select
      value={language.value}
      onChange={({ currentTarget }) => setLanguage(currentTarget.value as Language)}
    >
      {LANGUAGES.map(([code, name]) => (
        <option key={code} value={code} lang={code}>
          {name}
        </option>
      ))}
    </select>
  </label>
);
