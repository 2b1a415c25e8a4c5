/** The page comes to life. */

import { offer } from "./capabilities.js";
import { startChat } from "./chat.js";
import { watchServer } from "./connection.js";
import { find } from "./dom.js";
import { askForKey } from "./key.js";
import { Notice } from "./notice.js";
import { startReading } from "./read.js";
import { askForModel } from "./server.js";
import { startTabs } from "./tabs.js";
import { startTalking } from "./talk.js";
import { showVoices, startVoices } from "./voices.js";

const notice = new Notice("notice");

/** Show what the server has. */
async function look() {
  notice.clear();
  try {
    const model = await askForModel();
    find("model").textContent = model.id;
    offer(model);
    await showVoices();
  } catch (error) {
    notice.show(error);
  }
}

startTabs(document.querySelector("[role=tablist]"));
startChat();
startTalking();
startReading();
startVoices();
find("change-key").onclick = async () => {
  if (await askForKey("It can be replaced, or forgotten.")) await look();
};
void look();
// A server that is back may be another one.
void watchServer(look);
