/** Attaches files to the message. */

import { attachFiles } from "../state/files.ts";
import { clearError, showError } from "../state/notices.ts";

/** Attach files to the message, or say why not. */
export function attach(files: Iterable<File>): void {
  clearError("conversation");
  try {
    attachFiles(files);
  } catch (error) {
    showError("conversation", error);
  }
}
