"""The intake's worker: decodes one request at a time, in a process that a hostile file may ruin."""

import resource
from dataclasses import replace
from pathlib import Path

import av
import cv2
from PIL import Image

from sglang_omni.engines.media_decoder.contract import Decoded, DecodeRequest, MediaDecoderSettings
from sglang_omni.engines.runtime.background_priority import lower_priority
from sglang_omni.engines.runtime.worker import StepInput, StepResults
from sglang_omni.media.decode import Content, decode_medium
from sglang_omni.protocol.errors import ConfigError, InvalidRequest

LEAST_ROOM_BYTES = 128 << 20
_REASON_CHARACTERS = 200
_NAMES = {"image": "picture", "video": "video", "audio": "clip"}


class MediaDecoderWorker:
    """A `StepWorker` without batching: a step decodes what arrived, so nothing is ever held.

    Every request ends in `Decoded` or in `InvalidRequest`; only a failure to hand the result over
    is an error of another kind.
    """

    info = None
    busy = False

    def __init__(self, settings: MediaDecoderSettings) -> None:
        self._settings = settings
        self._decoded = 0
        self._refused = 0

    def step(self, work: StepInput) -> StepResults:
        """Decode every arrival. What is cancelled meanwhile was over before this step."""
        return [(request_id, self._answer(request)) for request_id, request in work.arrivals]

    def counters(self) -> dict[str, float]:
        """Totals since the start."""
        return {"decoded": self._decoded, "refused": self._refused}

    def close(self) -> None:
        """Nothing is held between steps."""

    def _answer(self, request: DecodeRequest) -> Decoded | Exception:
        name = _NAMES[request.kind]
        try:
            array, seconds = self._decode(request, name)
            layout = request.array.write(array)
        except MemoryError:  # The result has no room beside what made it.
            return self._refuse(_too_much(name))
        except OSError as error:
            return error
        except InvalidRequest as error:
            return self._refuse(error)
        self._decoded += 1
        return Decoded(layout, seconds)

    def _decode(self, request: DecodeRequest, name: str) -> Content:
        try:
            limits, rules = self._settings.limits, self._settings.rules
            if request.sample_rate is not None:
                rules = replace(rules, sample_rate=request.sample_rate)
            if request.most_seconds is not None:
                limits = replace(limits, audio_seconds=request.most_seconds)
            return decode_medium(request.kind, request.content(), limits, rules, request.image)
        except InvalidRequest:
            raise
        except MemoryError as error:
            raise _too_much(name) from error
        except Exception as error:
            # A decoder fails in as many ways as there are broken files.
            raise InvalidRequest(f"the {name} cannot be decoded: {_reason(error)}") from error

    def _refuse(self, error: InvalidRequest) -> InvalidRequest:
        self._refused += 1
        return error


def _too_much(name: str) -> InvalidRequest:
    return InvalidRequest(f"the {name} needs more memory than a decoder may have")


def _reason(error: Exception) -> str:
    """What a decoder said, in one line. FFmpeg's errors carry a number and a file name as well."""
    text = error.strerror if isinstance(error, av.FFmpegError) else str(error)
    first = next(iter((text or "").splitlines()), "")
    return first[:_REASON_CHARACTERS] or type(error).__name__


def open_worker(settings: MediaDecoderSettings) -> MediaDecoderWorker:
    """Confine this process, for good, to one thread a decoder and the memory that is allowed.

    Raises `ConfigError` when what is allowed leaves no room for a file.
    """
    _require_room(settings.limits.memory_bytes)
    cv2.setNumThreads(1)
    cv2.ocl.setUseOpenCL(False)
    # Pillow looks at this wherever it makes a picture, not only at the first header.
    Image.MAX_IMAGE_PIXELS = settings.limits.pixels
    lower_priority()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    memory = settings.limits.memory_bytes
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    return MediaDecoderWorker(settings)


def _require_room(memory_bytes: int) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    used = pages * resource.getpagesize()
    if used + LEAST_ROOM_BYTES > memory_bytes:
        raise ConfigError(
            f"a decoder may have {memory_bytes} bytes of address space and has {used} before its "
            "first file; allow it more"
        )
