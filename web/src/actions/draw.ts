/** Draws images, or edits one, and shows them while they are drawn. */

import { signal } from "@preact/signals";
import { withFieldLabel } from "../server/field_names.ts";
import { toImage } from "../server/image_url.ts";
import { stream } from "../server/server.ts";
import { getModelId } from "../state/model.ts";
import { clearError, showError } from "../state/notices.ts";
import { startRequest } from "../state/requests.ts";
import { t } from "../text/index.ts";

/** How often an image is shown before it is finished: as often as the server does it. */
const PREVIEWS = 3;
/** The number of images that are kept. */
const MAX_IMAGES = 24;

/** An image that is being drawn, or that was. */
export interface DrawnImage {
  key: string;
  prompt: string;
  /** The image or its preview, and an object URL of it. */
  data: Blob;
  url: string;
  /** Null until it is finished. */
  finished: { size: string; seed: number; format: string } | null;
}

/** The newest first. */
export const drawnImages = signal<DrawnImage[]>([]);
export const drawState = signal("");
export const isDrawing = signal(false);
/** The steps of all images together; null unless they are drawn. */
export const stepsDone = signal<{ done: number; total: number } | null>(null);

export interface DrawFields {
  prompt: string;
  n: number;
  negative_prompt?: string;
  size?: string;
  steps?: number;
  seed?: number;
}

interface DrawEvent {
  type: string;
  image_index: number;
  num_steps: number;
  b64_json: string;
  output_format: string;
  size: string;
  seed: number;
}

let abortController = new AbortController();
let numDrawings = 0;

/** Draw images; with a picture, edit it. */
export async function draw(fields: DrawFields, picture: File | null): Promise<void> {
  if (isDrawing.value) return;
  clearError("draw");
  abortController = new AbortController();
  const { signal } = abortController;
  isDrawing.value = true;
  try {
    await request(fields, picture, signal);
  } catch (error) {
    drawState.value = signal.aborted ? "stopped" : "failed";
    if (!signal.aborted) showError("draw", error);
  } finally {
    isDrawing.value = false;
    stepsDone.value = null;
    dropUnfinished();
  }
}

/** Stop drawing. */
export const stopDrawing = (): void => abortController.abort();

async function request(
  fields: DrawFields,
  picture: File | null,
  signal: AbortSignal,
): Promise<void> {
  const body = {
    model: await getModelId(),
    ...fields,
    stream: true,
    partial_images: PREVIEWS,
    progress: true,
  };
  const measured = startRequest();
  drawState.value = "waiting";
  const path = picture ? "v1/images/edits" : "v1/images/generations";
  const sent = picture ? toForm(body, picture) : body;
  const { id, events } = await stream<DrawEvent>(path, sent, signal).catch((error) => {
    throw withFieldLabel(error, (field) => getLabels()[field]);
  });
  numDrawings += 1;
  const drawing = numDrawings;
  let done = 0;
  for await (const event of events) {
    signal.throwIfAborted();
    if (event.type.endsWith(".progress")) {
      done += 1;
      drawState.value = "drawing";
      stepsDone.value = { done, total: event.num_steps * fields.n };
      continue;
    }
    const isFinished = !event.type.endsWith(".partial_image");
    if (isFinished) measured.recordImage();
    show(`${drawing}-${event.image_index}`, fields.prompt, event, isFinished);
  }
  drawState.value = "done";
  measured.end(id).catch((error) => showError("draw", error));
}

function toForm(fields: object, picture: File): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.set(name, String(value));
  form.set("image", picture);
  return form;
}

function getLabels(): Record<string, string> {
  const words = t();
  return {
    prompt: words.prompt,
    negative_prompt: words.negative,
    size: words.size,
    steps: words.steps,
    seed: words.seed,
    n: words.count,
    image: words.pictureToEdit,
  };
}

function show(key: string, prompt: string, event: DrawEvent, isFinished: boolean): void {
  const { b64_json, output_format, size, seed } = event;
  const data = toImage(b64_json, `image/${output_format}`);
  const finished = isFinished ? { size, seed, format: output_format } : null;
  const image = { key, prompt, data, url: URL.createObjectURL(data), finished };
  const known = drawnImages.value.find((one) => one.key === key);
  if (known) URL.revokeObjectURL(known.url);
  const others = drawnImages.value;
  drawnImages.value = known
    ? others.map((one) => (one.key === key ? image : one))
    : [image, ...others];
}

/** Remove the images that were not finished, and the oldest of too many. */
function dropUnfinished(): void {
  const kept = drawnImages.value.filter(({ finished }) => finished).slice(0, MAX_IMAGES);
  for (const image of drawnImages.value) {
    if (!kept.includes(image)) URL.revokeObjectURL(image.url);
  }
  drawnImages.value = kept;
}
