/** The page comes to life. */

import { startChat } from "./chat.js";
import { find } from "./dom.js";
import { askForKey } from "./key.js";
import { complain, settle } from "./notice.js";
import { startReading } from "./read.js";
import { servedModel } from "./server.js";
import { startTabs } from "./tabs.js";
import { startTalking } from "./talk.js";
import { showVoices, startVoices } from "./voices.js";

/** Show what the server has. */
async function look() {
  settle();
  find("model").textContent = await servedModel();
  await showVoices();
}

startTabs(document.querySelector("[role=tablist]"));
startChat();
startTalking();
startReading();
startVoices();
find("change-key").onclick = async () => {
  const changed = await askForKey("It can be replaced, or forgotten.");
  if (changed) await look().catch(complain);
};
look().catch(complain);
