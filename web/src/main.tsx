/** Starts the page. */

import "./style.css";
import { render } from "preact";
import { watchServer } from "./server/connection.ts";
import { keepConversations } from "./state/history.ts";
import { App, loadServer } from "./views/app.tsx";

render(<App />, document.body);
keepConversations();
void loadServer();
// A server that answers again may have another model.
void watchServer(loadServer);
