"""The audio encoder as a `ModalityEncoder`. It never imports sglang."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from sglang_omni.engines.encoder.contract import EncoderSettings
from sglang_omni.engines.encoder.modality_encoder import Cost
from sglang_omni.engines.runtime.shared_array import Layout
from sglang_omni.models.ming.config import read_encoder_config
from sglang_omni.models.ming.encoders.attention import default_backend, load_attention
from sglang_omni.models.ming.encoders.audio import feature_rows, load_audio
from sglang_omni.models.ming.encoders.mel import log_mel
from sglang_omni.models.ming.media_rules import SAMPLE_RATE
from sglang_omni.protocol.errors import InvalidRequest


class AudioModality:
    """The audio encoder of a checkpoint on one device. Costs are in seconds of audio."""

    def __init__(self, settings: EncoderSettings) -> None:
        """Load the encoder.

        Raises:
            CheckpointError: The checkpoint is incomplete.
        """
        self.device, dtype = torch.device(settings.device), getattr(torch, settings.dtype)
        self.budget = settings.max_audio_seconds
        head_dim = read_encoder_config(settings.checkpoint).audio.head_dim
        attention = load_attention(default_backend(self.device, dtype, head_dim))
        self._encoder = load_audio(settings.checkpoint, attention, self.device, dtype)
        self.description = f"audio encoder on {self.device}: attention {attention.name}"

    def estimate_cost(self, layout: Layout) -> Cost:
        """Check that the array is float32 [samples] of a length that can be encoded."""
        if len(layout.shape) != 1 or np.dtype(layout.dtype) != np.float32:
            raise InvalidRequest(f"an audio clip must be float32 [samples], not {layout}")
        feature_rows(layout.shape[0], self._encoder.config.audio)
        seconds = layout.shape[0] / SAMPLE_RATE
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
        return self._encoder([log_mel(clip, bins) for clip in clips])

    def warm_up(self) -> None:
        """Encode a second of silence."""
        self.encode([np.zeros(SAMPLE_RATE, np.float32)])

    def close(self) -> None:
        """Do nothing: only memory is held."""
