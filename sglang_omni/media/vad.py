"""Voice activity: how likely each frame of 32 ms is speech, by silero's model.

The model comes with the package `silero-vad` and runs in onnxruntime. The package itself is never
imported: it would bring torch into the API process.
"""

from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from sglang_omni.protocol.errors import StartupError

# Of what the model hears, in Hz.
SAMPLE_RATE = 16_000
FRAME = 512
FRAME_MS = FRAME * 1000 // SAMPLE_RATE
# Samples of the frame before, which the model wants in front of each frame.
CONTEXT = 64
STATE = (1, 1, 128)


# Far above what silence, noise, tones and hum reach, far below what the softest voice does.
SPEECH_PROBABILITY = 0.3
# A recording is searched in pieces, for most begin with speech.
SEARCHED_S = 10


class Detector(Protocol):
    """Finds speech in one stream."""

    def push(self, samples: np.ndarray) -> list[float]:
        """Probabilities of the frames that `samples`, int16 at 16 kHz, complete."""
        ...


class SileroDetector:
    """One stream's state of the recurrent model; the model itself is shared and read only."""

    def __init__(self) -> None:
        """Raises `StartupError` when the package is not installed. The first one takes 0.3 s."""
        self._model = _model()
        self._pending: np.ndarray = np.zeros(CONTEXT, np.float32)
        self._hidden: np.ndarray = np.zeros(STATE, np.float32)
        self._cell = self._hidden

    def push(self, samples: np.ndarray) -> list[float]:
        """Probabilities of the frames that `samples`, int16 at 16 kHz, complete; about 0.1 ms
        of one core each."""
        pending = np.concatenate((self._pending, samples.astype(np.float32) / 32_768))
        frames = (len(pending) - CONTEXT) // FRAME
        self._pending = pending[frames * FRAME :]
        if not frames:
            return []
        windows = np.lib.stride_tricks.sliding_window_view(pending, CONTEXT + FRAME)
        inputs = {"input": windows[::FRAME][:frames], "h": self._hidden, "c": self._cell}
        speech, self._hidden, self._cell = self._model.run(None, inputs)
        return [float(value) for value in speech]


def contains_speech(samples: np.ndarray) -> bool:
    """Return whether anybody speaks in a recording, float32 [samples] in [-1, 1] at 16 kHz.

    Takes up to 3 ms of one core for each second without speech. Raises `StartupError` when the
    package is not installed.
    """
    detector = SileroDetector()
    # The end fills the last frame.
    padded = np.append(samples, np.zeros(FRAME, samples.dtype))
    step = SEARCHED_S * SAMPLE_RATE
    for begin in range(0, len(padded), step):
        piece = np.clip(padded[begin : begin + step], -1, 1) * 32_767
        if max(detector.push(np.rint(piece).astype(np.int16)), default=0.0) >= SPEECH_PROBABILITY:
            return True
    return False


@cache
def _model() -> Any:
    """The model on one thread: a frame is too little work to share."""
    # With the first session and not before: commands that hear nothing do not wait for it.
    from sglang_omni.media.onnx import open_session

    return open_session(_model_file(), threads=1)


def _model_file() -> Path:
    try:
        package = distribution("silero-vad")
    except PackageNotFoundError:
        raise StartupError("voice activity detection needs the package silero-vad") from None
    return Path(str(package.locate_file("silero_vad/data/silero_vad_16k_sequence.onnx")))
