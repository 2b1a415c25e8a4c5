"""The media decoder's worker: it decodes one request at a time, in a process that may crash."""

import resource
from dataclasses import replace
from pathlib import Path

import cv2
from PIL import Image

from sglang_omni.engines.media_decoder.contract import (
    Decoded,
    DecodeRequest,
    MediaDecoderSettings,
    RecordingRequest,
)
from sglang_omni.engines.media_decoder.decode_errors import as_client_error, build_memory_error
from sglang_omni.engines.media_decoder.recordings import OpenRecordings
from sglang_omni.engines.runtime.background_priority import lower_priority
from sglang_omni.engines.runtime.worker import StepInput, StepResults
from sglang_omni.media.decode import Content, decode_medium
from sglang_omni.media.speech_spans import RecordingProgress
from sglang_omni.protocol.errors import ConfigError, EngineFailed, InvalidRequest

MIN_FREE_BYTES = 128 << 20
_MEDIA_NAMES = {"image": "picture", "video": "video", "audio": "clip"}


class MediaDecoderWorker:
    """A `StepWorker` without batching. A step decodes every file, and reads on in recordings.

    Every request ends in its last output or `InvalidRequest`. Only a failure to write the result is
    an error of another kind.
    """

    info = None

    def __init__(self, settings: MediaDecoderSettings) -> None:
        self._settings = settings
        self._recordings = OpenRecordings(settings.limits)
        self._num_decoded = 0
        self._num_errors = 0

    @property
    def busy(self) -> bool:
        """Return whether a recording is not read to its end."""
        return bool(self._recordings.ids)

    def step(self, work: StepInput) -> StepResults:
        """Decode the files that arrived, and read a part of each recording."""
        for request_id in work.cancellations:
            self._recordings.close(request_id)
        results: StepResults = []
        for request_id, request in work.arrivals:
            if isinstance(request, DecodeRequest):
                results.append((request_id, self._process(request)))
            elif (error := self._open(request_id, request)) is not None:
                results.append((request_id, error))
        for request_id in self._recordings.ids - work.stalled:
            results.append((request_id, self._read(request_id)))
        return results

    def counters(self) -> dict[str, float]:
        """Return totals since the start."""
        return {"decoded": self._num_decoded, "request_errors": self._num_errors}

    def close(self) -> None:
        """Close the recordings that are not read to their end."""
        for request_id in self._recordings.ids:
            self._recordings.close(request_id)

    def _open(self, request_id: str, request: RecordingRequest) -> Exception | None:
        try:
            self._recordings.open(request_id, request)
        except EngineFailed as error:
            return error
        return None

    def _read(self, request_id: str) -> RecordingProgress | Exception:
        try:
            progress = self._recordings.read(request_id)
        except InvalidRequest as error:
            return self._reject(error)
        except EngineFailed as error:
            return error
        self._num_decoded += progress.last
        return progress

    def _process(self, request: DecodeRequest) -> Decoded | Exception:
        name = _MEDIA_NAMES[request.kind]
        try:
            with as_client_error(name):
                array, seconds = self._decode(request)
            layout = request.array.write(array)
        except MemoryError:  # The result does not fit beside the decoder's memory.
            return self._reject(build_memory_error(name))
        except OSError as error:
            return error
        except InvalidRequest as error:
            return self._reject(error)
        self._num_decoded += 1
        return Decoded(layout, seconds)

    def _decode(self, request: DecodeRequest) -> Content:
        limits, rules = self._settings.limits, self._settings.rules
        if request.sample_rate is not None:
            rules = replace(rules, sample_rate=request.sample_rate)
        if request.max_seconds is not None:
            limits = replace(limits, audio_seconds=request.max_seconds)
        files = request.content()
        return decode_medium(request.kind, files, limits, rules, request.image, request.video)

    def _reject(self, error: InvalidRequest) -> InvalidRequest:
        self._num_errors += 1
        return error


def open_worker(settings: MediaDecoderSettings) -> MediaDecoderWorker:
    """Limit this process permanently to one thread per library and the configured memory.

    Raises:
        ConfigError: The memory limit leaves no room for a file.
    """
    _check_memory_limit(settings.limits.memory_bytes)
    cv2.setNumThreads(1)
    cv2.ocl.setUseOpenCL(False)
    # Pillow checks this whenever it creates an image, not only for the first header.
    Image.MAX_IMAGE_PIXELS = settings.limits.pixels
    lower_priority()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    memory = settings.limits.memory_bytes
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    return MediaDecoderWorker(settings)


def _check_memory_limit(memory_bytes: int) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    used = pages * resource.getpagesize()
    if used + MIN_FREE_BYTES > memory_bytes:
        raise ConfigError(
            f"a decoder's limit of {memory_bytes} bytes of address space is too low: it uses "
            f"{used} bytes before its first file; raise the limit"
        )
