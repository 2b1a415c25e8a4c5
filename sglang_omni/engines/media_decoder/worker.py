"""The media decoder's worker: it decodes one request at a time, in a process that may crash."""

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

MIN_FREE_BYTES = 128 << 20
_REASON_CHARACTERS = 200
_MEDIA_NAMES = {"image": "picture", "video": "video", "audio": "clip"}


class MediaDecoderWorker:
    """A `StepWorker` without batching: a step decodes all arrivals, so no request is ever held.

    Every request ends in `Decoded` or `InvalidRequest`. Only a failure to write the result is an
    error of another kind.
    """

    info = None
    busy = False

    def __init__(self, settings: MediaDecoderSettings) -> None:
        self._settings = settings
        self._num_decoded = 0
        self._num_errors = 0

    def step(self, work: StepInput) -> StepResults:
        """Decode every arrival. Cancellations are ignored, because no request is held."""
        return [(request_id, self._process(request)) for request_id, request in work.arrivals]

    def counters(self) -> dict[str, float]:
        """Return totals since the start."""
        return {"decoded": self._num_decoded, "request_errors": self._num_errors}

    def close(self) -> None:
        """Do nothing: decoders are stateless."""

    def _process(self, request: DecodeRequest) -> Decoded | Exception:
        name = _MEDIA_NAMES[request.kind]
        try:
            array, seconds = self._decode(request, name)
            layout = request.array.write(array)
        except MemoryError:  # The result does not fit beside the decoder's memory.
            return self._reject(_out_of_memory(name))
        except OSError as error:
            return error
        except InvalidRequest as error:
            return self._reject(error)
        self._num_decoded += 1
        return Decoded(layout, seconds)

    def _decode(self, request: DecodeRequest, name: str) -> Content:
        try:
            limits, rules = self._settings.limits, self._settings.rules
            if request.sample_rate is not None:
                rules = replace(rules, sample_rate=request.sample_rate)
            if request.max_seconds is not None:
                limits = replace(limits, audio_seconds=request.max_seconds)
            return decode_medium(request.kind, request.content(), limits, rules, request.image)
        except InvalidRequest:
            raise
        except MemoryError as error:
            raise _out_of_memory(name) from error
        except Exception as error:
            # Decoders raise many kinds of exceptions for broken files.
            raise InvalidRequest(
                f"the {name} cannot be decoded: {_format_reason(error)}"
            ) from error

    def _reject(self, error: InvalidRequest) -> InvalidRequest:
        self._num_errors += 1
        return error


def _out_of_memory(name: str) -> InvalidRequest:
    return InvalidRequest(f"the {name} needs more memory than a decoder may have")


def _format_reason(error: Exception) -> str:
    """Return a decoder's error in one line. FFmpeg's `str` would add a number and a file name."""
    text = error.strerror if isinstance(error, av.FFmpegError) else str(error)
    first_line = next(iter((text or "").splitlines()), "")
    return first_line[:_REASON_CHARACTERS] or type(error).__name__


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
