/** Files of a message: images, audio and video. */

import { signal } from "@preact/signals";
import { t } from "../text/index.ts";

export type MediaKind = "image" | "audio" | "video";

/** The files of the message being written. */
export const draftFiles = signal<File[]>([]);

/** Return the kind of media of a file. Throws for any other file. */
export function getMediaKind(file: File): MediaKind {
  const kind = file.type.split("/")[0];
  if (kind === "image" || kind === "audio" || kind === "video") return kind;
  throw new Error(t().notMedia(file.name));
}

/** Add files to the message. Throws, and adds none, if one of them is not an image, audio or
 * video. */
export function attachFiles(files: Iterable<File>): void {
  const added = [...files];
  added.forEach(getMediaKind);
  draftFiles.value = [...draftFiles.value, ...added];
}

/** Return the files of the message, and leave none. */
export function takeFiles(): File[] {
  const files = draftFiles.value;
  draftFiles.value = [];
  return files;
}

export const createPreviewUrl = (file: File): string => URL.createObjectURL(file);

/** Return the content part of a message for a file. */
export async function toContentPart(file: File): Promise<object> {
  const type = `${getMediaKind(file)}_url`;
  return { type, [type]: { url: await readAsDataUri(file) } };
}

/** Return a file as a data URI. Throws if it cannot be read. */
export function readAsDataUri(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result as string);
    reader.onerror = () => reject(new Error(t().cannotRead(file.name)));
    reader.readAsDataURL(file);
  });
}
