/** The API key that the server may require. It is stored until this tab is closed. */

import { find } from "./dom.js";

const NAME = "sglang-omni-key";

/** Return the key, or null. */
export const getKey = () => sessionStorage.getItem(NAME);

/** Return the authorization header, empty without a key. */
export function getAuthHeaders() {
  const key = getKey();
  return key === null ? {} : { Authorization: `Bearer ${key}` };
}

let pending = null;

/** Ask the user for a key. Resolves to whether the key has changed. Concurrent calls share one
 * dialog. */
export function askForKey(reason) {
  pending ??= showDialog(reason).finally(() => {
    pending = null;
  });
  return pending;
}

function showDialog(reason) {
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
