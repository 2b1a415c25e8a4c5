/** The tab that draws images, or edits one, and shows them while they are drawn. */

import { find } from "./dom.js";
import { Drawing } from "./drawn_images.js";
import { withFieldLabel } from "./field_names.js";
import { startRequest } from "./last_request.js";
import { Notice } from "./notice.js";
import { getModelId, stream } from "./server.js";

/** Labels of the request's fields. */
const FIELDS = {
  prompt: "Prompt",
  negative_prompt: "Not in the image",
  size: "Size",
  steps: "Steps",
  seed: "Seed",
  n: "Count",
  image: "Picture to edit",
};
/** How often an image is shown before it is finished: as often as the server does it. */
const PREVIEWS = 3;

const notice = new Notice("draw-notice");
let abortController = new AbortController();

/** Return the fields of the request. The server chooses what is left empty. */
async function readFields() {
  const optional = {
    negative_prompt: find("draw-negative").value.trim(),
    size: find("draw-size").value.trim(),
    steps: find("draw-steps").value,
    seed: find("draw-seed").value,
  };
  const { steps, seed, ...texts } = optional;
  return {
    model: await getModelId(),
    prompt: find("draw-prompt").value,
    n: find("draw-count").valueAsNumber,
    stream: true,
    partial_images: PREVIEWS,
    progress: true,
    ...Object.fromEntries(Object.entries(texts).filter(([, value]) => value)),
    ...(steps && { steps: Number(steps) }),
    ...(seed && { seed: Number(seed) }),
  };
}

/** Return the route and the body of the request: JSON, or a form with the picture to edit. */
function buildRequest(fields) {
  const [picture] = find("draw-picture").files;
  if (!picture) return { path: "v1/images/generations", body: fields };
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.set(name, String(value));
  form.set("image", picture);
  return { path: "v1/images/edits", body: form };
}

async function draw(signal) {
  const fields = await readFields();
  const { path, body } = buildRequest(fields);
  const request = startRequest();
  showState("Waiting");
  const { id, events } = await stream(path, body, signal).catch((error) => {
    throw withFieldLabel(error, (field) => FIELDS[field]);
  });
  const drawing = new Drawing(find("draw-images"), fields.prompt);
  let stepsDone = 0;
  try {
    for await (const event of events) {
      signal.throwIfAborted();
      if (event.type.endsWith(".progress")) {
        stepsDone += 1;
        showSteps(stepsDone, event.num_steps * fields.n);
      } else if (event.type.endsWith(".partial_image")) {
        drawing.showPreview(event);
      } else {
        request.recordImage();
        drawing.complete(event);
      }
    }
  } finally {
    drawing.end();
  }
  showState("Done");
  request.end(id).catch((error) => notice.show(error));
}

/** Show the steps of all images together. */
function showSteps(done, total) {
  showState("Drawing");
  const bar = find("draw-progress");
  bar.hidden = false;
  Object.assign(bar, { max: total, value: done });
  find("draw-steps-done").textContent = `Step ${done} of ${total}`;
}

/** Show a state. A screen reader announces it, so it is set only when it changes. */
function showState(state) {
  const output = find("draw-state");
  if (output.value !== state) output.value = state;
}

function hideSteps() {
  find("draw-progress").hidden = true;
  find("draw-steps-done").textContent = "";
}

function showPicture() {
  find("draw-picture-remove").hidden = find("draw-picture").files.length === 0;
}

/** Set up the tab. */
export function startDrawing() {
  const form = find("draw-form");
  const sendButton = find("draw-send");
  form.onsubmit = async (event) => {
    event.preventDefault();
    if (sendButton.disabled) return;
    notice.clear();
    abortController = new AbortController();
    sendButton.disabled = true;
    try {
      await draw(abortController.signal);
    } catch (error) {
      showState(abortController.signal.aborted ? "Stopped" : "Failed");
      if (!abortController.signal.aborted) notice.show(error);
    } finally {
      sendButton.disabled = false;
      hideSteps();
    }
  };
  find("draw-prompt").onkeydown = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    form.requestSubmit();
  };
  find("draw-stop").onclick = () => abortController.abort();
  find("draw-picture").onchange = showPicture;
  find("draw-picture-remove").onclick = () => {
    find("draw-picture").value = "";
    showPicture();
    find("draw-picture").focus();
  };
}
