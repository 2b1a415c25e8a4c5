/** Shows errors. Each tab has an element for them, near its controls. */

import { find } from "./dom.js";

export class Notice {
  #element;

  /** Create a notice in the element with this id. */
  constructor(id) {
    this.#element = find(id);
  }

  /** Show an error and scroll to it. */
  show(error) {
    this.#element.textContent = error.message;
    this.#element.hidden = false;
    this.#element.scrollIntoView({ block: "nearest" });
  }

  /** Hide the last error. */
  clear() {
    this.#element.hidden = true;
    this.#element.textContent = "";
  }
}
