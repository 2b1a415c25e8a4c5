/** A request as code, in a dialog. */

import { useState } from "preact/hooks";
import { CODE_LANGUAGES, type CodeLanguage, toCode } from "../server/code.ts";
import { t } from "../text/index.ts";
import { CopyButton, Drawer } from "./controls.tsx";
import { shownCode } from "./turn.tsx";

export function Code() {
  const [language, setLanguage] = useState<CodeLanguage>("curl");
  const shown = shownCode.value;
  const close = () => {
    shownCode.value = null;
  };
  const text = shown ? toCode(language, shown.path, shown.body) : "";
  return (
    <Drawer title={t().codeTitle} isOpen={shown !== null} onClose={close} wide>
      <div class="row">
        {CODE_LANGUAGES.map(([code, name]) => (
          <button
            key={code}
            type="button"
            aria-pressed={code === language}
            onClick={() => setLanguage(code)}
          >
            {name}
          </button>
        ))}
        <CopyButton text={() => text} />
      </div>
      <pre id="code" tabindex={0}>
        <code>{text}</code>
      </pre>
      <p class="hint">{t().codeHint}</p>
    </Drawer>
  );
}
