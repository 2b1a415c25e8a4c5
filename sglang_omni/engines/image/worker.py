"""The image engine's worker: images of one kind share a step, and leave it when they are done."""

import time
from dataclasses import dataclass

import numpy as np
import torch

from sglang_omni.engines.image.contract import (
    DrawnImage,
    DrawProgress,
    DrawRequest,
    ImageEngineInfo,
    ImageSettings,
)
from sglang_omni.engines.image.rest import Rest
from sglang_omni.engines.runtime.shared_array import Layout, SharedArray
from sglang_omni.engines.runtime.worker import StepInput, StepResults
from sglang_omni.models.image import ImageInProgress, ImageInput, ImageModel
from sglang_omni.models.registry import family_of
from sglang_omni.protocol.errors import EngineFailed, InvalidRequest, OmniError
from sglang_omni.system.gpu_memory import count_gpu_memory
from sglang_omni.system.progress import report_progress

TOTALS = (
    *("steps", "image_steps", "finished", "aborted", "request_errors"),
    *("busy_seconds", "rested_seconds"),
)


@dataclass(frozen=True)
class Drawing:
    """A request whose image is in the making."""

    request: DrawRequest
    image: ImageInProgress


class ImageWorker:
    """A `StepWorker`. A step is one evaluation of the diffusion model, for images of one kind."""

    def __init__(self, model: ImageModel, settings: ImageSettings) -> None:
        self.info = ImageEngineInfo(settings.max_images, settings.max_batch_size, settings.dtype)
        self._model, self._settings = model, settings
        self._waiting: dict[str, DrawRequest] = {}
        # In the order in which they are served: who has done a step goes to the end.
        self._running: dict[str, Drawing] = {}
        self._stalled: frozenset[str] = frozenset()
        self._rest = Rest(settings.waiting, settings.rest)
        self._totals = dict.fromkeys(TOTALS, 0.0)

    @property
    def busy(self) -> bool:
        """Return whether a step would do work, given the requests stalled in the last step."""
        has_room = len(self._running) < self._settings.max_images
        return bool(self._waiting and has_room) or any(
            request_id not in self._stalled for request_id in self._running
        )

    def step(self, work: StepInput) -> StepResults:
        """Drop cancelled requests, start waiting ones, and advance one batch by one step.

        Each image of the batch yields a `DrawProgress`, and after its last step a `DrawnImage`. An
        invalid request yields its `OmniError`. While answers wait for their first output, the step
        begins a little later than it could (`rest`).
        """
        for request_id in work.cancellations:
            self._totals["aborted"] += 1
            self._waiting.pop(request_id, None)
            self._running.pop(request_id, None)
        self._stalled = work.stalled
        self._waiting.update(work.arrivals)
        return self._start_waiting() + self._advance()

    def counters(self) -> dict[str, float]:
        """Return the current load, and totals since the start."""
        load = {"waiting": len(self._waiting), "running": len(self._running)}
        return {**load, **self._totals, **count_gpu_memory()}

    def close(self) -> None:
        """Drop every request. The memory is freed with the process."""
        self._waiting, self._running = {}, {}

    def warm_up(self) -> None:
        """Draw one small image, so that every kernel has run."""
        image = self._model.start(self._model.sample_input())
        while self._model.progress(image)[0] < self._model.progress(image)[1]:
            self._model.advance([image])
        self._model.finish(image)

    def _start_waiting(self) -> StepResults:
        """Start waiting requests while there is room; return the errors of those that fail."""
        errors: StepResults = []
        while self._waiting and len(self._running) < self._settings.max_images:
            request_id = next(iter(self._waiting))
            request = self._waiting.pop(request_id)
            try:
                image = self._model.start(read_input(request))
            except OmniError as error:
                self._totals["request_errors"] += 1
                errors.append((request_id, error))
            else:
                self._running[request_id] = Drawing(request, image)
        return errors

    def _advance(self) -> StepResults:
        batch = self._choose()
        if not batch:
            return []
        self._totals["rested_seconds"] += self._rest.finish()
        started_at = time.perf_counter()
        self._model.advance([drawing.image for drawing in batch.values()])
        results: StepResults = []
        for request_id, drawing in batch.items():
            step, num_steps = self._model.progress(drawing.image)
            results.append((request_id, self._report(drawing, step, num_steps)))
            del self._running[request_id]
            if step < num_steps:
                self._running[request_id] = drawing
            else:
                results.append((request_id, self._finish(drawing)))
        self._totals["steps"] += 1
        self._totals["image_steps"] += len(batch)
        took_s = time.perf_counter() - started_at
        self._totals["busy_seconds"] += took_s
        self._rest.end_step(took_s)
        return results

    def _choose(self) -> dict[str, Drawing]:
        """Return the images of the next step: those like the one that has waited longest."""
        ready = {
            name: drawing for name, drawing in self._running.items() if name not in self._stalled
        }
        if not ready:
            return {}
        key = self._model.batch_key(next(iter(ready.values())).image)
        alike = [name for name, d in ready.items() if self._model.batch_key(d.image) == key]
        return {name: ready[name] for name in alike[: self._settings.max_batch_size]}

    def _report(self, drawing: Drawing, step: int, num_steps: int) -> DrawProgress:
        """Return the progress of an image, with a preview if one is due."""
        index = drawing.request.find_preview(step, num_steps)
        if index is None:
            return DrawProgress(step, num_steps)
        try:
            layout = drawing.request.previews[index].write(self._model.preview(drawing.image))
        except OSError:
            # The owner has cancelled the request, which ends with the next step.
            return DrawProgress(step, num_steps)
        return DrawProgress(step, num_steps, (index, layout))

    def _finish(self, drawing: Drawing) -> DrawnImage | OmniError:
        """Decode an image and write it to its request's memory."""
        pixels = self._model.finish(drawing.image)
        try:
            layout = drawing.request.pixels.write(pixels)
        except OSError as error:
            # The owner has cancelled the request, so it does not read this error.
            return EngineFailed(f"the request's memory is gone: {error}")
        self._totals["finished"] += 1
        return DrawnImage(layout)


def read_input(request: DrawRequest) -> ImageInput:
    """Return the model's input of a request.

    Raises:
        InvalidRequest: An array is smaller than its layout, or there is no step.
        EngineFailed: The request's memory cannot be read.
    """
    if request.steps < 1:
        raise InvalidRequest("an image takes at least one step", param="steps")
    reference = None
    if request.reference is not None and request.reference_layout is not None:
        reference = _read_array(request.reference, request.reference_layout)
        if reference.ndim != 3 or reference.shape[2] != 3 or reference.dtype != np.uint8:
            raise InvalidRequest("a reference image must be uint8 [height, width, 3]")
    negative = None
    if request.negative_states is not None and request.negative_layout is not None:
        negative = _read_array(request.negative_states, request.negative_layout)
    return ImageInput(
        states=_read_array(request.states, request.states_layout),
        prompt=request.prompt,
        size=request.size,
        aspect=request.aspect,
        resolution=request.resolution,
        steps=request.steps,
        guidance=request.guidance,
        seed=request.seed,
        reference=reference,
        negative_states=negative,
    )


def _read_array(memory: SharedArray, layout: Layout) -> np.ndarray:
    try:
        # A copy: the mapping is read-only for PyTorch, and its owner may end.
        return memory.read(layout).copy()
    except ValueError as error:
        raise InvalidRequest(f"the array is smaller than {layout}") from error
    except OSError as error:
        raise EngineFailed(f"the request's memory cannot be read: {error}") from error


def open_worker(settings: ImageSettings) -> ImageWorker:
    """Load the image model and warm it up.

    Raises:
        CheckpointError: The checkpoint is incomplete or draws no images.
        ConfigError: The dtype or the back end is not supported.
    """
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    if settings.device != "cpu":
        torch.cuda.set_device(torch.device(settings.device))
    family = family_of(settings.checkpoint)
    model = family.load_image_model(
        settings.checkpoint, settings.device, settings.dtype, settings.backend, settings.fp8
    )
    worker = ImageWorker(model, settings)
    report_progress("warming up")
    worker.warm_up()
    return worker
