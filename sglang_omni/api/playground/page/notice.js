/** What went wrong, for everybody to see and hear. */

import { find } from "./dom.js";

/** Show an error; one that the user brought about by stopping is none. */
export function complain(error) {
  if (error.name === "AbortError") return;
  const notice = find("notice");
  notice.textContent = error.message;
  notice.hidden = false;
}

/** Take the last error away. */
export function settle() {
  find("notice").hidden = true;
}
