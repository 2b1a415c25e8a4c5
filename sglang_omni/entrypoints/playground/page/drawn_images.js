/** The list of images: those that are being drawn, and those that were. */

import { createElement } from "./dom.js";
import { createImageUrl } from "./image_url.js";

/** The number of images that are kept. */
const MAX_IMAGES = 24;

/** The images of one request. They come before those of earlier ones. */
export class Drawing {
  #list;
  #prompt;
  /** The item of each image by its index. */
  #items = new Map();

  /** Create a drawing of `prompt`, whose images are shown in `list`. */
  constructor(list, prompt) {
    this.#list = list;
    this.#prompt = prompt;
  }

  /** Show what an image will probably be. */
  showPreview(event) {
    setSource(this.#getItem(event.image_index), event, `Preview: ${this.#prompt}`);
  }

  /** Show a finished image, and how to keep it. */
  complete(event) {
    const item = this.#getItem(event.image_index);
    setSource(item, event, this.#prompt);
    item.ariaBusy = "false";
    const link = createElement("a", {
      href: item.querySelector("img").src,
      download: `image-${event.seed}.${event.output_format}`,
      ariaLabel: `Download the image with seed ${event.seed}`,
      textContent: "Download",
    });
    const caption = createElement("span", {}, `${event.size}, seed ${event.seed}`);
    item.append(createElement("p", { className: "row" }, caption, link));
  }

  /** Remove the images that were not finished, and the oldest of too many. */
  end() {
    for (const item of this.#items.values()) {
      if (item.ariaBusy === "true") remove(item);
    }
    [...this.#list.children].slice(MAX_IMAGES).forEach(remove);
  }

  #getItem(index) {
    const known = this.#items.get(index);
    if (known) return known;
    const item = createElement("li", { ariaBusy: "true" }, createElement("img"));
    this.#items.set(index, item);
    this.#list.prepend(item);
    return item;
  }
}

/** Show the file of an event in an item, and forget the one before it. */
function setSource(item, { b64_json, output_format }, alt) {
  const image = item.querySelector("img");
  if (image.src) URL.revokeObjectURL(image.src);
  Object.assign(image, { src: createImageUrl(b64_json, `image/${output_format}`), alt });
}

function remove(item) {
  URL.revokeObjectURL(item.querySelector("img").src);
  item.remove();
}
