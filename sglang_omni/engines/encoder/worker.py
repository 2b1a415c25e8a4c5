"""The encoder engine's worker: waiting requests are batched, encoded and written to their rows."""

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
from sglang_omni.engines.encoder.queue import PassQueue, Request, WaitingRequest
from sglang_omni.engines.encoder.threads import use_threads
from sglang_omni.engines.runtime.worker import StepInput, StepResults, report_progress
from sglang_omni.models.ming.config import read_encoder_config
from sglang_omni.protocol.errors import EngineFailed, InvalidRequest, OmniError

LOGGER = logging.getLogger(__name__)

COUNTED = ("images", "frames", "patches", "clips", "audio_seconds")


class EncoderWorker:
    """A `StepWorker`. A step is at most one forward pass of pictures and one of clips."""

    def __init__(self, lanes: dict[type, ModalityEncoder], info: EncoderInfo) -> None:
        """`lanes` are by the type of the requests that they serve."""
        self.info = info
        self._lanes = lanes
        self._queues = {kind: PassQueue(lane.budget) for kind, lane in lanes.items()}
        self._totals = dict.fromkeys((*COUNTED, "batches", "refused", "busy_seconds"), 0.0)

    @property
    def busy(self) -> bool:
        """Whether any request waits."""
        return any(self._queues.values())

    def step(self, work: StepInput) -> StepResults:
        """Forget cancelled requests, take new ones in, and encode the next batch of each kind."""
        for request_id in work.cancellations:
            for queue in self._queues.values():
                queue.cancel(request_id)
        results: StepResults = []
        for request_id, request in work.arrivals:
            try:
                self._take_in(request_id, request)
            except InvalidRequest as error:
                results.append((request_id, self._refused(error)))
        for kind, lane in self._lanes.items():
            results += self._advance(lane, self._queues[kind])
        return results

    def counters(self) -> dict[str, float]:
        """What waits now, and totals since the start."""
        return {"waiting": sum(map(len, self._queues.values())), **self._totals}

    def close(self) -> None:
        """Forget every request and let the other ranks go."""
        for lane in self._lanes.values():
            lane.close()
        self._queues = {kind: PassQueue(lane.budget) for kind, lane in self._lanes.items()}

    def _take_in(self, request_id: str, request: Request) -> None:
        kind = type(request)
        if kind not in self._lanes:
            raise InvalidRequest(f"this engine does not serve a {kind.__name__}")
        load = self._lanes[kind].estimate_cost(request.layout)
        self._queues[kind].add(request_id, request, load)

    def _advance(self, lane: ModalityEncoder, queue: PassQueue) -> StepResults:
        """Encode the next batch of one lane."""
        chosen = queue.take()
        results: StepResults = []
        arrays: dict[str, np.ndarray] = {}
        for request_id, one in chosen.items():
            try:
                arrays[request_id] = self._read(lane, one)
            except OmniError as error:
                results.append((request_id, self._refused(error)))
        if not arrays:
            return results
        started = time.perf_counter()
        rows = lane.encode(list(arrays.values()))
        for (request_id, one), features in zip(_only(chosen, arrays), rows, strict=True):
            encoded = one.with_features(features)
            if encoded.parts:
                queue.put_back(request_id, encoded)
            else:
                results.append((request_id, self._deliver(encoded)))
        self._totals["batches"] += 1
        self._totals["busy_seconds"] += time.perf_counter() - started
        return results

    def _read(self, lane: ModalityEncoder, waiting: WaitingRequest) -> np.ndarray:
        """Return what the next pass encodes of a request."""
        try:
            array = waiting.source.read(waiting.request.layout)
        except ValueError as error:
            raise InvalidRequest(f"less was written than {waiting.request.layout}") from error
        except OSError as error:
            raise EngineFailed(f"the request's memory cannot be read: {error}") from error
        part = waiting.next_part(array)
        lane.validate(part)
        return part

    def _deliver(self, waiting: WaitingRequest) -> Encoded | OmniError:
        """Write a request's features to its rows."""
        try:
            layout = waiting.request.rows.write(as_array(waiting.all_features()))
        except OSError as error:
            # Nobody reads this: whoever made the rows has cancelled the request meanwhile.
            return EngineFailed(f"the request's rows are gone: {error}")
        for name, count in waiting.load.counts.items():
            self._totals[name] += count
        return Encoded(layout)

    def _refused(self, error: OmniError) -> OmniError:
        self._totals["refused"] += 1
        return error


def _only(
    chosen: dict[str, WaitingRequest], arrays: dict[str, np.ndarray]
) -> list[tuple[str, WaitingRequest]]:
    return [(request_id, one) for request_id, one in chosen.items() if request_id in arrays]


def as_array(features: Tensor) -> np.ndarray:
    """Features as NumPy has them: float32, or the bits of bfloat16 as uint16."""
    host = features.contiguous()
    if host.is_cuda:
        # Page-locked memory is kept by PyTorch; other memory would be mapped and cleared each time.
        host = torch.empty(host.shape, dtype=host.dtype, pin_memory=True).copy_(host)
    return (host.view(torch.uint16) if host.dtype == torch.bfloat16 else host).numpy()


def open_worker(settings: EncoderSettings) -> EncoderWorker:
    """Load the encoders that `settings` name and warm them up.

    Raises `CheckpointError` for an incomplete checkpoint and `ConfigError` for settings that
    cannot be run. Without `images` it never imports sglang.
    """
    validate_settings(settings)
    use_threads(settings)
    config = read_encoder_config(settings.checkpoint)
    lanes = _open_lanes(settings)
    report_progress("warming up")
    for lane in lanes.values():
        lane.warm_up()
    return EncoderWorker(lanes, EncoderInfo(config.hidden_size, settings.dtype))


def _open_lanes(settings: EncoderSettings) -> dict[type, ModalityEncoder]:
    lanes: dict[type, ModalityEncoder] = {}
    if settings.images:
        report_progress("loading the image encoder")
        from sglang_omni.engines.encoder.vision import VisionModality

        pictures = VisionModality(settings)
        LOGGER.info(pictures.about)
        lanes[VisionEncodeRequest] = pictures
    if settings.audio:
        report_progress("loading the audio encoder")
        from sglang_omni.engines.encoder.audio import AudioModality

        clips = AudioModality(settings)
        LOGGER.info(clips.about)
        lanes[AudioEncodeRequest] = clips
    return lanes
