/** What went wrong, beside what the user works with: each tab has a place for it. */

import { find } from "./dom.js";

export class Notice {
  #place;

  /** `id` names the element that shows it. */
  constructor(id) {
    this.#place = find(id);
  }

  /** Show an error, where the user sees it. */
  show(error) {
    this.#place.textContent = error.message;
    this.#place.hidden = false;
    this.#place.scrollIntoView({ block: "nearest" });
  }

  /** Take the last error away. */
  clear() {
    this.#place.hidden = true;
    this.#place.textContent = "";
  }
}
