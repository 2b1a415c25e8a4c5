/** Code for the browser's audio thread. */

import { request } from "./server.js";

/** Load a module from a URL of the server into an audio context. If the server does not answer, or
 * the browser cannot run the module, closes the context and throws. */
export async function loadWorklet(context, url) {
  try {
    await context.audioWorklet.addModule(url);
  } catch (error) {
    await context.close();
    // The browser gives no reason. Usually the server does not answer; then this request throws.
    await request(url);
    throw new Error(`This browser cannot process sound here: ${error.message}`);
  }
}
