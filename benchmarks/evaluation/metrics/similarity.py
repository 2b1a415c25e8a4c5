"""The similarity of two voices: the cosine of their speaker vectors, by CAM++.

seed-tts-eval uses a WavLM-large with its own head (weights by its authors, which no package
contains); its similarities and these are not comparable. CAM++ is the network that the released
checkpoint clones voices with (`campplus.onnx`, 192 numbers).
"""

from pathlib import Path

import numpy as np
import soxr

RATE = 16_000


class SpeakerSimilarity:
    """Compare voices with the CAM++ network of a file."""

    name = "campplus"

    def __init__(self, weights: Path) -> None:
        """Load the network. Raises `FileNotFoundError` without the file."""
        # Imported here: torch takes seconds to import.
        from sglang_omni.models.ming.speech.speaker_encoder import SpeakerEncoder

        if not weights.is_file():
            raise FileNotFoundError(f"no speaker network: {weights}")
        self._encoder = SpeakerEncoder(weights)

    def vector(self, samples: np.ndarray, rate: int) -> np.ndarray:
        """Return the speaker vector [192], of length 1, of float samples [n] at `rate` Hz."""
        import torch

        from sglang_omni.models.ming.speech.speaker_encoder import compute_speaker_fbank

        sound = soxr.resample(samples.astype(np.float32), rate, RATE)
        found = self._encoder(compute_speaker_fbank(torch.from_numpy(sound))).numpy()
        return np.asarray(found / np.linalg.norm(found))

    def similarity(self, one: tuple[np.ndarray, int], other: tuple[np.ndarray, int]) -> float:
        """Return the cosine of two recordings (samples and rate); 1 for the same voice."""
        return float(self.vector(*one) @ self.vector(*other))
