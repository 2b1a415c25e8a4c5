/** The key that the server may ask for. It is kept for this tab, until that is closed. */

import { find } from "./dom.js";

const NAME = "sglang-omni-key";

/** The key, or null. */
export const currentKey = () => sessionStorage.getItem(NAME);

/** The header that presents the key, if there is one. */
export function credentials() {
  const key = currentKey();
  return key === null ? {} : { Authorization: `Bearer ${key}` };
}

let asking = null;

/** Ask the user for a key. Resolves to whether there is another one now; who asks while the
 * question stands gets the same answer. */
export function askForKey(reason) {
  asking ??= ask(reason).finally(() => {
    asking = null;
  });
  return asking;
}

function ask(reason) {
  const dialog = find("key-dialog");
  const input = find("key-input");
  find("key-reason").textContent = reason;
  input.value = "";
  dialog.showModal();
  return new Promise((resolve) => {
    find("key-form").onsubmit = (event) => {
      event.preventDefault();
      sessionStorage.setItem(NAME, input.value.trim());
      dialog.close("changed");
    };
    find("key-forget").onclick = () => {
      sessionStorage.removeItem(NAME);
      dialog.close("changed");
    };
    find("key-cancel").onclick = () => dialog.close("kept");
    dialog.oncancel = () => {
      dialog.returnValue = "kept";
    };
    dialog.onclose = () => {
      input.value = "";
      resolve(dialog.returnValue === "changed");
    };
  });
}
