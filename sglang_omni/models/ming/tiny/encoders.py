"""Weights of the image and audio encoders and their projectors, under the checkpoint's names."""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from sglang_omni.models.ming.tiny.draw import Draw, sane_tensors

Shapes = Iterator[tuple[str, tuple[int, ...]]]

POSITIONS = "audio.positional_embedding"
# Beside the sinusoids, so that a reader who computes them instead of loading them is found out.
POSITION_NOISE = 0.1
WHISPER_THETA = 10000.0


def encoder_weights(draw: Draw, config: dict[str, Any]) -> dict[str, Tensor]:
    """Every tensor of both encoders, float32, for the values of `config.json`."""
    vision, audio = config["vision_config"], config["audio_config"]
    hidden = config["llm_config"]["hidden_size"]
    shapes = dict(_vision(vision))
    shapes |= _linear("linear_proj.0", vision["out_hidden_size"], hidden)
    shapes |= _linear("linear_proj.2", hidden, hidden)
    whisper = audio["whisper_encoder_config"]
    shapes |= _whisper(whisper)
    shapes |= _convolution(
        "linear_proj_audio.0", whisper["n_state"], hidden, audio["ds_kernel_size"]
    )
    shapes |= _linear("linear_proj_audio.3", hidden, hidden)
    noise = draw.normal(POSITIONS, (whisper["n_ctx"], whisper["n_state"]), POSITION_NOISE)
    return sane_tensors(draw, shapes) | {POSITIONS: sinusoids(*noise.shape) + noise}


def sinusoids(length: int, width: int) -> Tensor:
    """Whisper's position table [length, width]: sines of every frequency, then cosines."""
    step = math.log(WHISPER_THETA) / (width // 2 - 1)
    frequencies = torch.exp(-step * torch.arange(width // 2))
    angles = torch.arange(length)[:, None] * frequencies
    return torch.cat((angles.sin(), angles.cos()), dim=1)


def _vision(config: dict[str, Any]) -> Shapes:
    hidden, width = config["hidden_size"], config["intermediate_size"]
    merged, out = hidden * config["spatial_merge_size"] ** 2, config["out_hidden_size"]
    patch = (config["temporal_patch_size"], config["patch_size"], config["patch_size"])
    yield "vision.patch_embed.proj.weight", (hidden, config["in_channels"], *patch)
    yield "vision.patch_embed.proj.bias", (hidden,)
    yield "vision.pos_embed.weight", (config["num_position_embeddings"], hidden)
    for index in range(config["depth"]):
        block = f"vision.blocks.{index}"
        yield from _norm(f"{block}.norm1", hidden)
        yield from _norm(f"{block}.norm2", hidden)
        yield from _linear(f"{block}.attn.qkv", hidden, 3 * hidden)
        yield from _linear(f"{block}.attn.proj", hidden, hidden)
        yield from _linear(f"{block}.mlp.linear_fc1", hidden, width)
        yield from _linear(f"{block}.mlp.linear_fc2", width, hidden)
    yield from _merger("vision.merger", hidden, merged, out)
    for index in range(len(config["deepstack_visual_indexes"])):
        # These normalise after the merge, the last one before it.
        yield from _merger(f"vision.deepstack_merger_list.{index}", merged, merged, out)


def _merger(name: str, normed: int, merged: int, out: int) -> Shapes:
    yield from _norm(f"{name}.norm", normed)
    yield from _linear(f"{name}.linear_fc1", merged, merged)
    yield from _linear(f"{name}.linear_fc2", merged, out)


def _whisper(config: dict[str, int]) -> Shapes:
    state = config["n_state"]
    yield from _convolution("audio.conv1", config["n_mels"], state, 3)
    yield from _convolution("audio.conv2", state, state, 3)
    for index in range(config["n_layer"]):
        block = f"audio.blocks.{index}"
        yield from _norm(f"{block}.attn_ln", state)
        yield from _norm(f"{block}.mlp_ln", state)
        for part in ("query", "value", "out"):
            yield from _linear(f"{block}.attn.{part}", state, state)
        yield f"{block}.attn.key.weight", (state, state)
        yield from _linear(f"{block}.mlp.0", state, 4 * state)
        yield from _linear(f"{block}.mlp.2", 4 * state, state)
    yield from _norm("audio.ln_post", state)


def _norm(name: str, size: int) -> Shapes:
    yield f"{name}.weight", (size,)
    yield f"{name}.bias", (size,)


def _linear(name: str, size: int, out: int) -> Shapes:
    yield f"{name}.weight", (out, size)
    yield f"{name}.bias", (out,)


def _convolution(name: str, size: int, out: int, kernel: int) -> Shapes:
    yield f"{name}.weight", (out, size, kernel)
    yield f"{name}.bias", (out,)
