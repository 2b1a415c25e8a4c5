"""The lane of clips. It never imports sglang."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from sglang_omni.engines.encoder.contract import EncoderSettings
from sglang_omni.engines.encoder.modality_encoder import Cost
from sglang_omni.engines.runtime.shared_array import Layout
from sglang_omni.models.ming.config import read_encoder_config
from sglang_omni.models.ming.encoders.attention import load_attention, select_backend
from sglang_omni.models.ming.encoders.audio import count_feature_rows, load_audio
from sglang_omni.models.ming.encoders.mel import compute_log_mel
from sglang_omni.models.ming.media_rules import SAMPLE_RATE
from sglang_omni.protocol.errors import InvalidRequest


class AudioModality:
    """The audio encoder of a checkpoint on one device. Costs are seconds."""

    def __init__(self, settings: EncoderSettings) -> None:
        """Raises `CheckpointError` for an incomplete checkpoint."""
        self.device, dtype = torch.device(settings.device), getattr(torch, settings.dtype)
        self.budget = settings.max_audio_seconds
        head_dim = read_encoder_config(settings.checkpoint).audio.head_dim
        attention = load_attention(select_backend(self.device, dtype, head_dim))
        self._encoder = load_audio(settings.checkpoint, attention, self.device, dtype)
        self.about = f"audio encoder on {self.device}: attention {attention.name}"

    def estimate_cost(self, layout: Layout) -> Cost:
        """Check that the array is a float32 clip of a length that can be encoded."""
        if len(layout.shape) != 1 or np.dtype(layout.dtype) != np.float32:
            raise InvalidRequest(f"a clip is float32 [samples], not {layout}")
        count_feature_rows(layout.shape[0], self._encoder.config.audio)
        seconds = layout.shape[0] / SAMPLE_RATE
        return Cost(seconds, {"clips": 1, "audio_seconds": seconds})

    def validate(self, array: np.ndarray) -> None:
        """Check that every sample is a number."""
        if not np.isfinite(array).all():
            raise InvalidRequest("the clip holds samples that are no finite numbers")

    @torch.inference_mode()
    def encode(self, arrays: Sequence[np.ndarray]) -> list[Tensor]:
        """Features of each clip [samples]."""
        bins = self._encoder.config.audio.n_mels
        clips = (torch.from_numpy(array).to(self.device) for array in arrays)
        return self._encoder([compute_log_mel(clip, bins) for clip in clips])

    def warm_up(self) -> None:
        """Encode a second of silence."""
        self.encode([np.zeros(SAMPLE_RATE, np.float32)])

    def close(self) -> None:
        """Nothing to give up."""
