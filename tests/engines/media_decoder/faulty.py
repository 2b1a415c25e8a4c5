"""A decoder that goes wrong when a file tells it to, for the tests of the pool."""

import ctypes
import os
import time

from sglang_omni.engines.media_decoder.contract import (
    DecodeRequest,
    MediaDecoderSettings,
    RecordingRequest,
    SharedFile,
)
from sglang_omni.engines.media_decoder.worker import MediaDecoderWorker, open_worker
from sglang_omni.engines.runtime.worker import StepInput, StepResults

HANG, HANG_LOCKED, EXIT, SEGFAULT, SLOW = b"hang", b"hang locked", b"exit", b"segfault", b"slow"
SLOW_S = 0.6


class FaultyWorker(MediaDecoderWorker):
    """The real worker, for files that are none of the five above."""

    def step(self, work: StepInput) -> StepResults:
        """Misbehave, then decode."""
        for _, request in work.arrivals:
            _misbehave(_first_file(request))
        return super().step(work)


def _first_file(request: DecodeRequest | RecordingRequest) -> bytes | SharedFile:
    if isinstance(request, DecodeRequest):
        return request.files[0]
    with request.source.open() as file:
        return file.read(16)


def _misbehave(file: bytes | SharedFile) -> None:
    match file:
        case b"hang":
            time.sleep(600)
        case b"hang locked":
            ctypes.PyDLL(None).sleep(600)  # Holds the interpreter, so that no beat is sent.
        case b"exit":
            os._exit(3)
        case b"segfault":
            ctypes.string_at(0)
        case b"slow":
            time.sleep(SLOW_S)


def open_faulty(settings: MediaDecoderSettings) -> FaultyWorker:
    """Confine the process as the real factory does."""
    open_worker(settings)
    return FaultyWorker(settings)
