/** Files that the user attaches to a message: pictures, clips and recordings. */

import { button, element, find } from "./dom.js";

const KINDS = ["image", "audio", "video"];
const SHOWN_BY = { image: "img", audio: "audio", video: "video" };

/** The file that each part of a message holds. */
const fileByPart = new WeakMap();

/** Which kind of medium a file is. Throws for any other. */
function kindOf(file) {
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

/** The part of a message that holds a file. */
export async function partOf(file) {
  const type = `${kindOf(file)}_url`;
  const part = { type, [type]: { url: await readAsDataUri(file) } };
  fileByPart.set(part, file);
  return part;
}

/** The name of the file in a part of a message; undefined for a text. */
export const fileName = (part) => fileByPart.get(part)?.name;

/** An element that shows a file, by an address in memory. */
export function preview(file) {
  const kind = kindOf(file);
  const shown = element(SHOWN_BY[kind], { src: URL.createObjectURL(file) });
  if (kind === "image") shown.alt = file.name;
  else Object.assign(shown, { controls: true, ariaLabel: file.name });
  return shown;
}

/** Give the memory back that previews hold. */
export function forgetPreviews(previews) {
  previews.forEach(({ src }) => URL.revokeObjectURL(src));
}

/** The files of the message that is being written, in a list with a button to remove each. */
export class Attachments {
  #files = [];

  /** Take files in, but none if one of them is no medium: then it throws. */
  add(files) {
    [...files].forEach(kindOf);
    this.#files.push(...files);
    this.#show();
  }

  /** The files, which are the message's own from now on. */
  take() {
    const taken = this.#files;
    this.#files = [];
    this.#show();
    return taken;
  }

  #show() {
    const rows = this.#files.map((file) => {
      const remove = () => {
        this.#files = this.#files.filter((other) => other !== file);
        this.#show();
        find("chat-attach").focus();
      };
      const label = { ariaLabel: `Remove ${file.name}` };
      return element("li", {}, file.name, button("Remove", remove, label));
    });
    find("chat-files").replaceChildren(...rows);
  }
}
