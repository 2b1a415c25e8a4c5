/** Starts the page. */

import "./style.css";
import { effect } from "@preact/signals";
import { render } from "preact";
import { setVolume } from "./audio/player.ts";
import { watchServer } from "./server/connection.ts";
import { keepConversations } from "./state/history.ts";
import { volume } from "./state/settings.ts";
import { App, loadServer } from "./views/app.tsx";

render(<App />, document.body);
keepConversations();
effect(() => setVolume(volume.value));
void loadServer();
// A server that answers again may have another model.
void watchServer(loadServer);
