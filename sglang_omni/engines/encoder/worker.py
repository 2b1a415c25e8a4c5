"""The encoder engine's worker: it batches and encodes requests and writes their features."""

import logging
import time

import numpy as np
import torch
from torch import Tensor

from sglang_omni.engines.encoder.contract import (
    AudioEncodeRequest,
    Encoded,
    EncoderInfo,
    EncoderSettings,
    VisionEncodeRequest,
)
from sglang_omni.engines.encoder.launch import validate_settings
from sglang_omni.engines.encoder.modality_encoder import ModalityEncoder
from sglang_omni.engines.encoder.queue import EncodeRequest, PassQueue, WaitingRequest
from sglang_omni.engines.encoder.threads import limit_threads
from sglang_omni.engines.runtime.worker import StepInput, StepResults
from sglang_omni.models.registry import family_of
from sglang_omni.protocol.errors import EngineFailed, InvalidRequest, OmniError
from sglang_omni.system.gpu_memory import count_gpu_memory
from sglang_omni.system.progress import report_progress

LOGGER = logging.getLogger(__name__)

COUNTERS = ("images", "frames", "patches", "audio_clips", "audio_seconds")


class EncoderWorker:
    """A `StepWorker`. A step is at most one forward pass of the vision and the audio encoder."""

    def __init__(self, encoders: dict[type, ModalityEncoder], info: EncoderInfo) -> None:
        """Create a worker with `encoders` by the type of the requests that they serve."""
        self.info = info
        self._encoders = encoders
        self._queues = {kind: PassQueue(encoder.budget) for kind, encoder in encoders.items()}
        self._totals = dict.fromkeys((*COUNTERS, "batches", "request_errors", "busy_seconds"), 0.0)

    @property
    def busy(self) -> bool:
        """Return whether any request waits."""
        return any(self._queues.values())

    def step(self, work: StepInput) -> StepResults:
        """Drop cancelled requests, queue new ones, and encode the next batch of each modality."""
        for request_id in work.cancellations:
            for queue in self._queues.values():
                queue.cancel(request_id)
        results: StepResults = []
        for request_id, request in work.arrivals:
            try:
                self._accept(request_id, request)
            except InvalidRequest as error:
                results.append((request_id, self._reject(error)))
        for kind, encoder in self._encoders.items():
            results += self._advance(encoder, self._queues[kind])
        return results

    def counters(self) -> dict[str, float]:
        """Return the number of waiting requests, and totals since the start."""
        waiting = sum(map(len, self._queues.values()))
        return {"waiting": waiting, **self._totals, **count_gpu_memory()}

    def close(self) -> None:
        """Drop every request and close the encoders."""
        for encoder in self._encoders.values():
            encoder.close()
        self._queues = {kind: PassQueue(encoder.budget) for kind, encoder in self._encoders.items()}

    def _accept(self, request_id: str, request: EncodeRequest) -> None:
        kind = type(request)
        if kind not in self._encoders:
            raise InvalidRequest(f"this engine does not serve {kind.__name__}")
        cost = self._encoders[kind].estimate_cost(request.layout)
        self._queues[kind].add(request_id, request, cost)

    def _advance(self, encoder: ModalityEncoder, queue: PassQueue) -> StepResults:
        """Encode the next batch of one modality."""
        batch = queue.take()
        results: StepResults = []
        arrays: dict[str, np.ndarray] = {}
        for request_id, waiting in batch.items():
            try:
                arrays[request_id] = self._read(encoder, waiting)
            except OmniError as error:
                results.append((request_id, self._reject(error)))
        if not arrays:
            return results
        started_at = time.perf_counter()
        rows = encoder.encode(list(arrays.values()))
        for (request_id, waiting), features in zip(_select_read(batch, arrays), rows, strict=True):
            encoded = waiting.with_features(features)
            if encoded.parts:
                queue.put_back(request_id, encoded)
            else:
                results.append((request_id, self._deliver(encoded)))
        self._totals["batches"] += 1
        self._totals["busy_seconds"] += time.perf_counter() - started_at
        return results

    def _read(self, encoder: ModalityEncoder, waiting: WaitingRequest) -> np.ndarray:
        """Read the part of a request's array that the next pass encodes."""
        try:
            array = waiting.source.read(waiting.request.layout)
        except ValueError as error:
            raise InvalidRequest(f"the array is smaller than {waiting.request.layout}") from error
        except OSError as error:
            raise EngineFailed(f"the request's memory cannot be read: {error}") from error
        part = waiting.next_part(array)
        encoder.validate(part)
        return part

    def _deliver(self, waiting: WaitingRequest) -> Encoded | OmniError:
        """Write a request's features to its rows."""
        try:
            layout = waiting.request.rows.write(to_array(waiting.all_features()))
        except OSError as error:
            # The owner of the rows has cancelled the request, so it does not read this error.
            return EngineFailed(f"the request's rows are gone: {error}")
        for name, count in waiting.cost.counts.items():
            self._totals[name] += count
        return Encoded(layout)

    def _reject(self, error: OmniError) -> OmniError:
        self._totals["request_errors"] += 1
        return error


def _select_read(
    batch: dict[str, WaitingRequest], arrays: dict[str, np.ndarray]
) -> list[tuple[str, WaitingRequest]]:
    return [(request_id, waiting) for request_id, waiting in batch.items() if request_id in arrays]


def to_array(features: Tensor) -> np.ndarray:
    """Convert features to NumPy: float32, or bfloat16 as uint16 bits."""
    host = features.contiguous()
    if host.is_cuda:
        # PyTorch caches pinned memory. Other memory would be mapped and cleared each time.
        host = torch.empty(host.shape, dtype=host.dtype, pin_memory=True).copy_(host)
    return (host.view(torch.uint16) if host.dtype == torch.bfloat16 else host).numpy()


def open_worker(settings: EncoderSettings) -> EncoderWorker:
    """Load the encoders of the settings and warm them up. Without `images`, sglang is not imported.

    Raises:
        CheckpointError: The checkpoint is incomplete.
        ConfigError: The settings are invalid.
    """
    validate_settings(settings)
    limit_threads(settings)
    width = family_of(settings.checkpoint).encoder_width(settings.checkpoint)
    encoders = _open_encoders(settings)
    report_progress("warming up")
    for encoder in encoders.values():
        encoder.warm_up()
    return EncoderWorker(encoders, EncoderInfo(width, settings.dtype))


def _open_encoders(settings: EncoderSettings) -> dict[type, ModalityEncoder]:
    encoders: dict[type, ModalityEncoder] = {}
    if settings.images:
        report_progress("loading the image encoder")
        from sglang_omni.engines.encoder.vision import VisionModality

        vision = VisionModality(settings)
        LOGGER.info(vision.description)
        encoders[VisionEncodeRequest] = vision
    if settings.audio:
        report_progress("loading the audio encoder")
        from sglang_omni.engines.encoder.audio import AudioModality

        audio = AudioModality(settings)
        LOGGER.info(audio.description)
        encoders[AudioEncodeRequest] = audio
    return encoders
