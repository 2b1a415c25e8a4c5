"""Convert the sample rate of a stream of chunks."""

import numpy as np
import soxr


class Resampler:
    """Convert chunks from one sample rate to another. The joined output equals the one-shot result.

    Equal rates pass through unchanged. The filter (soxr HQ) holds samples back, so a short chunk
    may give nothing until the next one, or `finish`.
    """

    def __init__(self, source_rate: int, target_rate: int) -> None:
        self._stream = (
            None
            if source_rate == target_rate
            else soxr.ResampleStream(source_rate, target_rate, 1, dtype="float32", quality="HQ")
        )

    def push(self, pcm: np.ndarray) -> np.ndarray:
        """Take float32 samples [n] and return those that are ready, [m]."""
        return pcm if self._stream is None else self._stream.resample_chunk(pcm)

    def finish(self) -> np.ndarray:
        """Return the samples that the filter still holds. Call once, after the last `push`."""
        rest = np.zeros(0, np.float32)
        return rest if self._stream is None else self._stream.resample_chunk(rest, last=True)
