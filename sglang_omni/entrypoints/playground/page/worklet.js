/** Code for the browser's audio thread. */

import { request } from "./server.js";

/** Load a module, from an address of the server, into an audio context; without it the context is
 * closed. Throws where the server does not answer, or the browser does not run it. */
export async function loadWorklet(context, url) {
  try {
    await context.audioWorklet.addModule(url);
  } catch (error) {
    await context.close();
    // The browser does not say why it has no module: a server that is away is the usual reason.
    await request(url);
    throw new Error(`This browser cannot process sound here: ${error.message}`);
  }
}
