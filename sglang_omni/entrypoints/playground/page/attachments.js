/** Files that the user attaches to a message: images, audio and video. */

import { createButton, createElement, find } from "./dom.js";

const KINDS = ["image", "audio", "video"];
const ELEMENT_NAMES = { image: "img", audio: "audio", video: "video" };

/** The file of each content part. */
const fileByPart = new WeakMap();

/** Return the kind of media of a file. Throws for any other file. */
function getMediaKind(file) {
  const kind = file.type.split("/")[0];
  if (!KINDS.includes(kind)) throw new Error(`${file.name} is not an image, video or recording`);
  return kind;
}

function readAsDataUri(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(new Error(`${file.name} cannot be read`));
    reader.readAsDataURL(file);
  });
}

/** Return the content part of a message for a file. */
export async function toContentPart(file) {
  const type = `${getMediaKind(file)}_url`;
  const part = { type, [type]: { url: await readAsDataUri(file) } };
  fileByPart.set(part, file);
  return part;
}

/** Return the name of the file in a content part; undefined for text. */
export const getFileName = (part) => fileByPart.get(part)?.name;

/** Create an element that shows a file by an object URL. */
export function preview(file) {
  const kind = getMediaKind(file);
  const media = createElement(ELEMENT_NAMES[kind], { src: URL.createObjectURL(file) });
  if (kind === "image") media.alt = file.name;
  else Object.assign(media, { controls: true, ariaLabel: file.name });
  return media;
}

/** Release the memory of previews. */
export function revokePreviews(previews) {
  previews.forEach(({ src }) => URL.revokeObjectURL(src));
}

/** The files of the message being written, shown as a list with a button to remove each. */
export class Attachments {
  #files = [];

  /** Add files. Throws, and adds none, if one of them is not an image, audio or video. */
  add(files) {
    [...files].forEach(getMediaKind);
    this.#files.push(...files);
    this.#show();
  }

  /** Return the files and clear the list. */
  take() {
    const files = this.#files;
    this.#files = [];
    this.#show();
    return files;
  }

  #show() {
    const rows = this.#files.map((file) => {
      const remove = () => {
        this.#files = this.#files.filter((other) => other !== file);
        this.#show();
        find("chat-attach").focus();
      };
      const label = { ariaLabel: `Remove ${file.name}` };
      return createElement("li", {}, file.name, createButton("Remove", remove, label));
    });
    find("chat-files").replaceChildren(...rows);
  }
}
