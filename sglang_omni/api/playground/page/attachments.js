/** Files that the user attaches to a message: pictures, clips and recordings. */

import { button, element, find } from "./dom.js";

const KINDS = ["image", "audio", "video"];
const SHOWN_BY = { image: "img", audio: "audio", video: "video" };

/** Which kind of medium a file is. Throws for any other. */
function kindOf(file) {
  const kind = file.type.split("/")[0];
  if (!KINDS.includes(kind)) throw new Error(`${file.name} is no picture, clip or recording`);
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
  return { type, [type]: { url: await readAsDataUri(file) } };
}

/** An element that shows a file, by an address in memory. */
export function preview(file) {
  const kind = kindOf(file);
  const shown = element(SHOWN_BY[kind], { src: URL.createObjectURL(file) });
  if (kind === "image") shown.alt = file.name;
  else Object.assign(shown, { controls: true, ariaLabel: file.name });
  return shown;
}

/** The files of the message that is being written, in a list with a button to remove each. */
export class Attachments {
  #files = [];

  /** Take files in. Throws for what is no medium. */
  add(files) {
    for (const file of files) {
      kindOf(file);
      this.#files.push(file);
    }
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
