/** Code for the browser's audio thread. */

import { request } from "../server/server.ts";
import { t } from "../text/index.ts";

/** Load a module from a URL of the server into an audio context. If the server does not answer, or
 * the browser cannot run the module, closes the context and throws. */
export async function loadWorklet(context: AudioContext, url: URL): Promise<void> {
  try {
    await context.audioWorklet.addModule(url);
  } catch (error) {
    await context.close();
    // The browser gives no reason. Usually the server does not answer; then this request throws.
    await request(url);
    throw new Error(t().noSound((error as Error).message));
  }
}
