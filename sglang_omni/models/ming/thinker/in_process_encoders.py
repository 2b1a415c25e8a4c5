"""The encoders inside SGLang's own process, for the stock server; ours runs them as engines."""

from collections.abc import Sequence
from typing import Any

import torch
from sglang.srt.managers.schedule_batch import MultimodalDataItem
from torch import Tensor, nn

from sglang_omni.models.ming.config import parse_encoder_config
from sglang_omni.models.ming.encoders.attention import default_backend, load_attention
from sglang_omni.models.ming.encoders.audio import AudioEncoder
from sglang_omni.models.ming.encoders.grid import grid_of
from sglang_omni.models.ming.encoders.loading import WeightFiller, audio_filler, vision_filler
from sglang_omni.models.ming.encoders.mel import log_mel
from sglang_omni.models.ming.encoders.parallel_linears import ParallelLinears
from sglang_omni.models.ming.encoders.pixels import patchify
from sglang_omni.models.ming.encoders.vision import VisionEncoder


class InProcessEncoders(nn.Module):
    """Both encoders; items hold what an encoder engine is sent.

    Build it on the device and in the dtype of the model. Frames go one item at a time: SGLang
    asks for what the prompts of a batch lack, and it keeps the results.
    """

    def __init__(self, config: Any, prefix: str = "") -> None:
        super().__init__()
        self.config = parse_encoder_config(config.to_dict(), "config.json")
        device, dtype = torch.get_default_device(), torch.get_default_dtype()
        vision, audio = (
            load_attention(default_backend(device, dtype, part.head_dim))
            for part in (self.config.vision, self.config.audio)
        )
        self.images = VisionEncoder(self.config, vision, ParallelLinears(), device, prefix)
        self.clips = AudioEncoder(self.config, audio)

    def fillers(self) -> tuple[WeightFiller, WeightFiller]:
        """Where the checkpoint's encoder tensors go."""
        return vision_filler(self.images, self.config), audio_filler(self.clips, self.config)

    def picture_features(self, items: Sequence[MultimodalDataItem]) -> Tensor:
        """Feature rows [tokens, hidden] of uint8 frames [frames, height, width, 3]."""
        vision = self.config.vision
        frames = [_on(self.images, item.feature) for item in items]
        patches = torch.cat([patchify(one, vision) for one in frames])
        return self.images(patches, [grid_of(one.shape, vision) for one in frames])

    def clip_features(self, items: Sequence[MultimodalDataItem]) -> Tensor:
        """Feature rows [tokens, hidden] of samples [samples] at 16 kHz."""
        mels = [log_mel(_on(self.clips, item.feature), self.config.audio.n_mels) for item in items]
        return torch.cat(self.clips(mels))


def _on(module: nn.Module, feature: Tensor) -> Tensor:
    return feature.to(next(module.parameters()).device)
