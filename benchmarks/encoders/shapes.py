"""The encoders at the released shapes, with random weights that keep activations bounded."""

import json
import math
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from sglang_omni.models.ming.config import (
    VISION_ACTIVATION,
    AudioEncoderConfig,
    EncoderConfig,
    VisionConfig,
)
from sglang_omni.models.ming.encoders.tensors import list_vision_tensors
from sglang_omni.models.ming.thinker.hf_config import ARCHITECTURE

REAL = EncoderConfig(
    VisionConfig(27, 1152, 16, 4304, 3, 16, 2, 2, 4096, 2304, (8, 16, 24)),
    AudioEncoderConfig(15_000, 20, 32, 128, 1280, 3, 2),
    4096,
)
# Shapes that any machine can run, to try a benchmark.
SMALL = EncoderConfig(
    VisionConfig(2, 144, 2, 256, 3, 16, 2, 2, 128, 100, (0, 1, 1)),
    AudioEncoderConfig(3000, 2, 2, 128, 128, 3, 2),
    128,
)


def randomise_weights(module: nn.Module, seed: int = 0) -> None:
    """Draw every parameter and persistent buffer on its device."""
    tensors = module.state_dict(keep_vars=True)
    device = next(iter(tensors.values())).device
    generator = torch.Generator(device).manual_seed(seed)
    for name, tensor in tensors.items():
        fill_random(name, tensor.data, generator)


def fill_random(name: str, tensor: Tensor, generator: torch.Generator) -> None:
    """Fill a tensor: norms with one, biases with small numbers, matrices scaled by their fan-in."""
    if tensor.ndim == 1 and name.endswith("weight"):
        tensor.fill_(1)
    elif tensor.ndim == 1 or "pos" in name:
        tensor.normal_(0, 0.02, generator=generator)
    else:
        fan_in = math.prod(tensor.shape[1:])
        tensor.normal_(0, fan_in**-0.5, generator=generator)


def write_vision_checkpoint(folder: Path, config: EncoderConfig) -> None:
    """Write a checkpoint that holds the vision encoder alone, in bfloat16."""
    generator = torch.Generator().manual_seed(0)
    tensors = {}
    for name, shape in list_vision_tensors(config.vision, config.hidden_size).items():
        tensors[name] = torch.empty(shape)
        fill_random(name, tensors[name], generator)
    bf16_tensors = {name: tensor.bfloat16() for name, tensor in tensors.items()}
    save_file(bf16_tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(dict(_as_json(config))), encoding="utf-8")


def _as_json(config: EncoderConfig) -> Iterator[tuple[str, object]]:
    yield "architectures", [ARCHITECTURE]
    yield "vision_config", vars(config.vision) | {"hidden_act": VISION_ACTIVATION}
    yield "audio_config", vars(config.audio) | {"whisper_encoder_config": {}}
    yield "llm_config", {"hidden_size": config.hidden_size}
