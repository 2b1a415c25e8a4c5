/** Draws images and edits them. */

import { useRef, useState } from "preact/hooks";
import {
  type DrawFields,
  type DrawnImage,
  draw,
  drawState,
  drawnImages,
  isDrawing,
  stepsDone,
  stopDrawing,
} from "../actions/draw.ts";
import { t } from "../text/index.ts";
import { Notice } from "./controls.tsx";

const SIZES = ["1024x1024", "1536x1024", "1024x1536", "512x512"];

export function DrawView() {
  const [picture, setPicture] = useState<File | null>(null);
  const picker = useRef<HTMLInputElement>(null);
  const words = t();
  const remove = () => {
    setPicture(null);
    if (picker.current === null) return;
    picker.current.value = "";
    picker.current.focus();
  };
  const editImage = ({ data, finished }: DrawnImage) => {
    setPicture(new File([data], `image.${finished?.format}`, { type: data.type }));
    document.getElementById("draw-prompt")?.focus();
  };
  return (
    <div class="panel">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void draw(readFields(event.currentTarget), picture);
        }}
      >
        <label for="draw-prompt">{words.prompt}</label>
        <textarea
          id="draw-prompt"
          name="prompt"
          rows={3}
          required
          aria-describedby="draw-hint"
          onKeyDown={(event) => {
            if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
            event.preventDefault();
            event.currentTarget.form?.requestSubmit();
          }}
        />
        <p id="draw-hint" class="hint">
          {words.promptHint}
        </p>
        <Options />
        <div class="row">
          <label>
            {words.pictureToEdit}
            <input
              ref={picker}
              type="file"
              accept="image/*"
              onChange={({ currentTarget }) => setPicture(currentTarget.files?.[0] ?? null)}
            />
          </label>
          {picture && (
            <>
              <span class="hint">{picture.name}</span>
              <button type="button" onClick={remove}>
                {words.removePicture}
              </button>
            </>
          )}
        </div>
        <Notice place="draw" id="draw-notice" />
        <div class="row">
          <button type="submit" class="main" disabled={isDrawing.value}>
            {words.draw}
          </button>
          <button type="button" onClick={stopDrawing}>
            {words.stop}
          </button>
          <output id="draw-state">{words.drawStates[drawState.value] ?? ""}</output>
        </div>
        <Steps />
      </form>
      <ul id="draw-images" aria-label={words.images}>
        {drawnImages.value.map((image) => (
          <Image key={image.key} image={image} onEdit={() => editImage(image)} />
        ))}
      </ul>
    </div>
  );
}

function Options() {
  const words = t();
  return (
    <div class="fields">
      <label>
        {words.size}
        <input name="size" list="draw-sizes" placeholder={words.auto} maxlength={20} />
      </label>
      <label>
        {words.steps}
        <input name="steps" type="number" min="1" max="1000" placeholder={words.auto} />
      </label>
      <label>
        {words.seed}
        <input name="seed" type="number" min="0" max={2 ** 53 - 1} placeholder={words.random} />
      </label>
      <label>
        {words.count}
        <input name="n" type="number" min="1" max="10" defaultValue="1" required />
      </label>
      <label class="wide">
        {words.negative}
        <input name="negative_prompt" maxlength={4000} placeholder={words.negativeExample} />
      </label>
      <datalist id="draw-sizes">
        {SIZES.map((size) => (
          <option key={size} value={size} />
        ))}
      </datalist>
    </div>
  );
}

/** Return the fields of the form. The server chooses what is left empty. */
function readFields(form: HTMLFormElement): DrawFields {
  const data = new FormData(form);
  const read = (name: string) => String(data.get(name) ?? "").trim();
  const texts = ["negative_prompt", "size"].filter(read).map((name) => [name, read(name)]);
  const numbers = ["steps", "seed"].filter(read).map((name) => [name, Number(read(name))]);
  return {
    prompt: String(data.get("prompt")),
    n: Number(read("n")),
    ...Object.fromEntries([...texts, ...numbers]),
  };
}

function Steps() {
  const steps = stepsDone.value;
  const words = t();
  if (steps === null) return null;
  return (
    <div>
      <progress
        id="draw-progress"
        aria-label={words.stepsDone}
        max={steps.total}
        value={steps.done}
      />
      <span class="hint">{words.stepOf(steps.done, steps.total)}</span>
    </div>
  );
}

function Image({ image, onEdit }: { image: DrawnImage; onEdit: () => void }) {
  const words = t();
  const { prompt, url, finished } = image;
  return (
    <li aria-busy={finished === null}>
      <img src={url} alt={finished ? prompt : words.previewOf(prompt)} />
      {finished && (
        <p class="row">
          <span>{words.imageFigures(finished.size, finished.seed)}</span>
          <button type="button" class="plain" onClick={onEdit}>
            {words.editThis}
          </button>
          <a
            href={url}
            download={`image-${finished.seed}.${finished.format}`}
            aria-label={words.downloadImage(finished.seed)}
          >
            {words.download}
          </a>
        </p>
      )}
    </li>
  );
}
