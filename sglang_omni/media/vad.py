"""Voice activity detection with the Silero model: the speech probability of each 32 ms frame.

The model file comes with the package `silero-vad` and runs in onnxruntime. The package itself is
never imported, because it would load torch into the API process.
"""

from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from sglang_omni.protocol.errors import StartupError

# The sample rate of the model's input, in Hz.
SAMPLE_RATE = 16_000
FRAME = 512
FRAME_MS = FRAME * 1000 // SAMPLE_RATE
# Samples of the previous frame that the model needs before each frame.
CONTEXT = 64
STATE_SHAPE = (1, 1, 128)


# Far above the probability of silence, noise, tones and hum, and far below that of a soft voice.
SPEECH_PROBABILITY = 0.3
# A recording is searched in chunks of this length, because most start with speech.
SEARCH_CHUNK_S = 10


class Detector(Protocol):
    """Detect speech in one stream."""

    def push(self, samples: np.ndarray) -> list[float]:
        """Take int16 samples [n] at 16 kHz and return the probabilities of completed frames."""
        ...


class SileroDetector:
    """The recurrent state of one stream. The model itself is shared and read-only."""

    def __init__(self) -> None:
        """Load the model if needed; the first time takes 0.3 s.

        Raises `StartupError` if the package is not installed.
        """
        self._model = _load_model()
        self._pending: np.ndarray = np.zeros(CONTEXT, np.float32)
        self._hidden: np.ndarray = np.zeros(STATE_SHAPE, np.float32)
        self._cell = self._hidden

    def push(self, samples: np.ndarray) -> list[float]:
        """Take int16 samples [n] at 16 kHz and return the probabilities of completed frames.

        A frame takes one core about 0.1 ms.
        """
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
    """Return whether a recording, float32 [samples] in [-1, 1] at 16 kHz, contains speech.

    Takes one core up to 3 ms per second without speech. Raises `StartupError` if the package is
    not installed.
    """
    detector = SileroDetector()
    # Padding completes the last frame.
    padded = np.append(samples, np.zeros(FRAME, samples.dtype))
    step = SEARCH_CHUNK_S * SAMPLE_RATE
    for begin in range(0, len(padded), step):
        piece = np.clip(padded[begin : begin + step], -1, 1) * 32_767
        if max(detector.push(np.rint(piece).astype(np.int16)), default=0.0) >= SPEECH_PROBABILITY:
            return True
    return False


@cache
def _load_model() -> Any:
    """Return the model, which runs on one thread: a frame is too little work for more."""
    # Imported on first use, so commands without audio do not wait for onnxruntime.
    from sglang_omni.media.onnx import open_session

    return open_session(_find_model_file(), threads=1)


def _find_model_file() -> Path:
    try:
        package = distribution("silero-vad")
    except PackageNotFoundError:
        raise StartupError(
            "voice activity detection needs the package silero-vad; install it"
        ) from None
    return Path(str(package.locate_file("silero_vad/data/silero_vad_16k_sequence.onnx")))
