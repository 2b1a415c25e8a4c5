"""Sample-rate conversion of a stream of chunks."""

import numpy as np
import soxr


class Resampler:
    """Converts chunks from one rate to another; the joined output equals the one-shot result.

    Equal rates pass through untouched. The filter (soxr HQ) holds samples back, so a short
    chunk may give nothing until the next one, or `finish`.
    """

    def __init__(self, source_rate: int, target_rate: int) -> None:
        self._stream = (
            None
            if source_rate == target_rate
            else soxr.ResampleStream(source_rate, target_rate, 1, dtype="float32", quality="HQ")
        )

    def push(self, pcm: np.ndarray) -> np.ndarray:
        """Feed float32 samples `[samples]`; returns what is ready, `[samples_out]`."""
        return pcm if self._stream is None else self._stream.resample_chunk(pcm)

    def finish(self) -> np.ndarray:
        """The samples that the filter still holds. Call once, after the last `push`."""
        rest = np.zeros(0, np.float32)
        return rest if self._stream is None else self._stream.resample_chunk(rest, last=True)
