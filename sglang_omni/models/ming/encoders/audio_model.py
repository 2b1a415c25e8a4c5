"""Ming's audio encoder as a `ModalityModel`."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from sglang_omni.models.encoder import Cost
from sglang_omni.models.ming.config import read_encoder_config
from sglang_omni.models.ming.encoders.attention import load_attention, select_backend
from sglang_omni.models.ming.encoders.audio import count_feature_rows, load_audio
from sglang_omni.models.ming.encoders.mel import compute_log_mel
from sglang_omni.models.ming.media_rules import SAMPLE_RATE
from sglang_omni.protocol.errors import InvalidRequest


class MingAudioModel:
    """The audio encoder of a checkpoint on one device. Costs are in seconds."""

    def __init__(self, checkpoint: Path, device: str, dtype: str) -> None:
        """Load the encoder. Raises `CheckpointError` for an incomplete checkpoint."""
        self.device, torch_dtype = torch.device(device), getattr(torch, dtype)
        head_dim = read_encoder_config(checkpoint).audio.head_dim
        attention = load_attention(select_backend(self.device, torch_dtype, head_dim))
        self._encoder = load_audio(checkpoint, attention, self.device, torch_dtype)
        self.description = f"audio encoder on {self.device}: attention {attention.name}"

    def estimate_cost(self, shape: tuple[int, ...], dtype: str) -> Cost:
        """Check that the array is a float32 clip of a length that can be encoded."""
        if len(shape) != 1 or np.dtype(dtype) != np.float32:
            raise InvalidRequest(f"an audio clip must be float32 [samples], not {dtype} {shape}")
        count_feature_rows(shape[0], self._encoder.config.audio)
        seconds = shape[0] / SAMPLE_RATE
        return Cost(seconds, {"audio_clips": 1, "audio_seconds": seconds})

    def validate(self, array: np.ndarray) -> None:
        """Check that every sample is finite."""
        if not np.isfinite(array).all():
            raise InvalidRequest("the audio clip has samples that are not finite")

    @torch.inference_mode()
    def encode(self, arrays: Sequence[np.ndarray]) -> list[Tensor]:
        """Return the features [tokens, hidden] of each clip [samples]."""
        bins = self._encoder.config.audio.n_mels
        clips = (torch.from_numpy(array).to(self.device) for array in arrays)
        return self._encoder([compute_log_mel(clip, bins) for clip in clips])

    def sample_array(self) -> np.ndarray:
        """Return a second of silence."""
        return np.zeros(SAMPLE_RATE, np.float32)
