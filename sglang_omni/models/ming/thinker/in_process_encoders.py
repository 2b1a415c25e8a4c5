"""The encoders within SGLang's process, for the stock server; our server runs them as engines."""

from collections.abc import Sequence
from typing import Any

import torch
from sglang.srt.managers.schedule_batch import MultimodalDataItem
from torch import Tensor, nn

from sglang_omni.models.ming.config import parse_encoder_config
from sglang_omni.models.ming.encoders.attention import load_attention, select_backend
from sglang_omni.models.ming.encoders.audio import AudioEncoder
from sglang_omni.models.ming.encoders.grid import compute_grid
from sglang_omni.models.ming.encoders.loading import (
    WeightFiller,
    build_audio_filler,
    build_vision_filler,
)
from sglang_omni.models.ming.encoders.mel import compute_log_mel
from sglang_omni.models.ming.encoders.parallel_linears import ParallelLinears
from sglang_omni.models.ming.encoders.pixels import patchify
from sglang_omni.models.ming.encoders.vision import VisionEncoder


class InProcessEncoders(nn.Module):
    """Both encoders; items have the same content as requests to an encoder engine.

    Build this on the device and with the dtype of the model. Video frames are encoded per item:
    SGLang asks for the features that the prompts of a batch lack, and caches them.
    """

    def __init__(self, config: Any, prefix: str = "") -> None:
        super().__init__()
        self.config = parse_encoder_config(config.to_dict(), "config.json")
        device, dtype = torch.get_default_device(), torch.get_default_dtype()
        vision, audio = (
            load_attention(select_backend(device, dtype, encoder.head_dim))
            for encoder in (self.config.vision, self.config.audio)
        )
        self.vision = VisionEncoder(self.config, vision, ParallelLinears(), device, prefix)
        self.audio = AudioEncoder(self.config, audio)

    def fillers(self) -> tuple[WeightFiller, WeightFiller]:
        """Return the weight fillers for the encoder tensors of the checkpoint."""
        return build_vision_filler(self.vision, self.config), build_audio_filler(
            self.audio, self.config
        )

    def compute_image_features(self, items: Sequence[MultimodalDataItem]) -> Tensor:
        """Return feature rows [tokens, hidden] of uint8 frames [frames, height, width, 3]."""
        config = self.config.vision
        frames = [_to_device_of(self.vision, item.feature) for item in items]
        patches = torch.cat([patchify(item_frames, config) for item_frames in frames])
        return self.vision(
            patches, [compute_grid(item_frames.shape, config) for item_frames in frames]
        )

    def compute_audio_features(self, items: Sequence[MultimodalDataItem]) -> Tensor:
        """Return feature rows [tokens, hidden] of samples [samples] at 16 kHz."""
        mels = [
            compute_log_mel(_to_device_of(self.audio, item.feature), self.config.audio.n_mels)
            for item in items
        ]
        return torch.cat(self.audio(mels))


def _to_device_of(module: nn.Module, feature: Tensor) -> Tensor:
    return feature.to(next(module.parameters()).device)
