"""Weights of the image and audio encoders and their projectors, by checkpoint name."""

import math
from typing import Any

import torch
from torch import Tensor

from sglang_omni.models.ming.config import parse_encoder_config
from sglang_omni.models.ming.encoders.tensors import (
    POSITIONAL_EMBEDDING,
    list_audio_tensors,
    list_vision_tensors,
)
from sglang_omni.models.ming.tiny.draw import WeightSampler, sample_tensors

# Added to the sinusoids, so that tests detect code that computes them instead of loading them.
POSITION_NOISE = 0.1
WHISPER_THETA = 10000.0


def sample_encoder_weights(sampler: WeightSampler, config: dict[str, Any]) -> dict[str, Tensor]:
    """Return all float32 tensors of both encoders, for the values of `config.json`."""
    parsed = parse_encoder_config(config, "config.json")
    shapes = list_vision_tensors(parsed.vision, parsed.hidden_size)
    shapes |= list_audio_tensors(parsed.audio, parsed.hidden_size)
    noise = sampler.sample_normal(
        POSITIONAL_EMBEDDING, shapes.pop(POSITIONAL_EMBEDDING), POSITION_NOISE
    )
    return sample_tensors(sampler, shapes) | {
        POSITIONAL_EMBEDDING: compute_sinusoids(*noise.shape) + noise
    }


def compute_sinusoids(length: int, width: int) -> Tensor:
    """Return Whisper's position table [length, width]: sines of every frequency, then cosines."""
    step = math.log(WHISPER_THETA) / (width // 2 - 1)
    frequencies = torch.exp(-step * torch.arange(width // 2))
    angles = torch.arange(length)[:, None] * frequencies
    return torch.cat((angles.sin(), angles.cos()), dim=1)
