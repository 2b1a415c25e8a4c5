/** Starts the page. */

import { showCapabilities } from "./capabilities.js";
import { startChat } from "./chat.js";
import { watchServer } from "./connection.js";
import { find } from "./dom.js";
import { startDrawing } from "./draw.js";
import { askForKey } from "./key.js";
import { Notice } from "./notice.js";
import { startReading } from "./read.js";
import { loadModel } from "./server.js";
import { startTabs } from "./tabs.js";
import { startTalking } from "./talk.js";
import { showVoices, startVoices } from "./voices.js";

const notice = new Notice("notice");

/** Show the server's model and voices. */
async function loadServer() {
  notice.clear();
  try {
    const model = await loadModel();
    find("model").textContent = model.id;
    showCapabilities(model);
    await showVoices();
  } catch (error) {
    notice.show(error);
  }
}

startTabs(document.querySelector("[role=tablist]"));
startChat();
startTalking();
startReading();
startDrawing();
startVoices();
find("change-key").onclick = async () => {
  if (await askForKey("Enter a new key, or forget the old one.")) await loadServer();
};
void loadServer();
// A server that answers again may have another model.
void watchServer(loadServer);
