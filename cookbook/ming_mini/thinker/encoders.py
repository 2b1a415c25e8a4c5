"""Run the encoders over many pictures or clips at once.

Parameters and numbers are those of the product.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from cookbook.ming_mini.compilation import Runner, run_eager
from sglang_omni.models.ming.config import AUDIO_KERNEL
from sglang_omni.models.ming.encoders import audio, vision_reference
from sglang_omni.models.ming.encoders.audio import AudioEncoder, PackedConvolution
from sglang_omni.models.ming.encoders.grid import (
    Grid,
    compute_patch_positions,
    compute_rotary_angles,
    interpolate_positions,
)
from sglang_omni.models.ming.encoders.pixels import MAX_PIXEL, MEAN, STD
from sglang_omni.models.ming.encoders.rotary import apply_rotary
from sglang_omni.models.ming.encoders.vision_reference import VisionReference

Parts = tuple[Tensor, Tensor, Tensor]
"""Queries, keys and values [rows, heads, head_dim]."""
Length = TypeVar("Length", int, np.ndarray)


def patchify(pixels: Tensor, side: int, merge: int, time: int) -> Tensor:
    """Return patches [n, patches, width] of pictures of one size.

    Pictures are [n, height, width, 3]: each is all frames of its patches. Pairs of frames of a film
    are [n, time, height, width, 3]. Pixel values are 0 to 255.
    """
    count, *_, height, width, _ = pixels.shape
    mean, std = _colours(pixels.device)
    normal = (pixels / MAX_PIXEL - mean) / std
    unit = side * merge
    split = normal.view(count, -1, height // unit, merge, side, width // unit, merge, side, 3)
    # (picture, row, column, y of merge, x of merge, channel, frame, y, x)
    ordered = split.permute(0, 2, 5, 3, 6, 8, 1, 4, 7)
    frames = ordered.expand(*[-1] * 6, time, -1, -1)
    return frames.reshape(count, height // side * (width // side), -1)


@lru_cache
def _colours(device: torch.device) -> tuple[Tensor, Tensor]:
    """Return mean and deviation of the colours.

    They are cached, because copying them would wait for the device.
    """
    return torch.tensor(MEAN, device=device), torch.tensor(STD, device=device)


def encode_images(model: VisionReference, pixels: Tensor, run: Runner = run_eager) -> Tensor:
    """Return unit-norm features [n, tokens, hidden] of pictures of one size.

    Pictures are [n, height, width, 3], pairs of frames [n, 2, height, width, 3].
    """
    vision, config = model.vision, model.vision.config
    side = config.patch_size
    grid = Grid(1, pixels.shape[-3] // side, pixels.shape[-2] // side)
    places = compute_patch_positions(grid, config, pixels.device)
    patches = patchify(pixels, side, config.spatial_merge_size, config.temporal_patch_size)
    count, shape = len(pixels), patches.shape[:2]
    positions = interpolate_positions(vision.pos_embed.weight, places).repeat(count, 1)
    x = vision.patch_embed(patches.flatten(0, 1)) + positions
    turns = compute_rotary_angles(places, config.head_dim).repeat(count, 1)
    cos, sin = turns.cos(), turns.sin()
    for block in vision.blocks:
        assert isinstance(block, vision_reference.VisionReferenceBlock)
        x = run(
            _after_attention, block, x, _attend(run(_before_attention, block, x, cos, sin), shape)
        )
    merged = model.linear_proj(vision.merger(x))
    return F.normalize(merged.float(), dim=-1).view(count, -1, merged.shape[-1])


def encode_films(model: VisionReference, pixels: Tensor, run: Runner = run_eager) -> Tensor:
    """Return unit-norm features [n, tokens, hidden] of films of one size.

    Films are [n, frames, height, width, 3], with an even number of frames. Each pair of frames is
    encoded by itself; the pairs' tokens follow each other.
    """
    pairs = pixels.unflatten(1, (-1, model.vision.config.temporal_patch_size)).flatten(0, 1)
    return encode_images(model, pairs, run).unflatten(0, (len(pixels), -1)).flatten(1, 2)


def _before_attention(
    block: vision_reference.VisionReferenceBlock, x: Tensor, cos: Tensor, sin: Tensor
) -> Parts:
    heads = block.attn.heads
    q, k, v = block.attn.qkv(block.norm1(x)).unflatten(-1, (3, heads, -1)).unbind(1)
    return apply_rotary(q, cos, sin), apply_rotary(k, cos, sin), v.clone()


def _after_attention(
    block: vision_reference.VisionReferenceBlock, x: Tensor, seen: Tensor
) -> Tensor:
    x = x + block.attn.proj(seen)
    return x + block.mlp(block.norm2(x))


def _attend(parts: Parts, shape: Sequence[int], mask: Tensor | None = None) -> Tensor:
    """Compute attention within each sequence: [rows, heads * head_dim].

    The n sequences have a shape (n, length). `parts` are [rows, heads, head_dim].
    """
    q, k, v = (part.unflatten(0, shape).transpose(1, 2) for part in parts)
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    # A copy: for a view, compiled code would guard on its base, and recompile for each shape.
    return out.transpose(1, 2).flatten(2).flatten(0, 1).clone()


def encode_clips(
    model: AudioEncoder, mel: Tensor, lengths: Tensor, run: Runner = run_eager
) -> tuple[Tensor, Tensor]:
    """Return unit-norm features [n, rows, hidden] of clips.

    Also returns the tower's states [n, states, n_state]. `mel` [n, frames, bins] is padded after
    the `lengths` [n] of its clips; the values after the rows of a clip are undefined.
    """
    tower, projector = model.audio, model.linear_proj_audio
    x = F.gelu(_convolve(tower.conv1, zero_padding(mel, lengths)))
    x = F.gelu(_convolve(tower.conv2, zero_padding(x, lengths)))
    states = (lengths - 1) // audio.TOWER_STRIDE + 1
    shape = x.shape[:2]
    mask = (torch.arange(shape[1], device=x.device) < states[:, None])[:, None, None]
    x = x.flatten(0, 1) + tower.positional_embedding[: shape[1]].repeat(shape[0], 1)
    for block in tower.blocks:
        assert isinstance(block, audio.AudioBlock)
        heard = _attend(run(_before_audio_attention, block, x), shape, mask)
        x = run(_after_audio_attention, block, x, heard)
    x = tower.ln_post(x).unflatten(0, shape)
    first = projector["0"]
    assert isinstance(first, PackedConvolution)
    rows = projector["3"](F.gelu(_convolve(first, zero_padding(x, states))))
    return F.normalize(rows.float(), dim=-1), x


def _before_audio_attention(block: audio.AudioBlock, x: Tensor) -> Parts:
    normed, module = block.attn_ln(x), block.attn
    projections = module.query, module.key, module.value
    q, k, v = (one(normed).unflatten(-1, (module.heads, -1)) for one in projections)
    return q, k, v


def _after_audio_attention(block: audio.AudioBlock, x: Tensor, heard: Tensor) -> Tensor:
    x = x + block.attn.out(heard)
    return x + block.mlp(block.mlp_ln(x))


def num_feature_rows(frames: Length, stride: int) -> Length:
    """Return the number of feature rows for this many mel frames; `stride` is the projector's."""
    return num_conv_outputs(num_conv_outputs(frames, audio.TOWER_STRIDE), stride)


def num_conv_outputs(length: Length, stride: int) -> Length:
    """Return the number of outputs of a convolution with kernel 3 and padding 1."""
    return (length - 1) // stride + 1


def zero_padding(x: Tensor, lengths: Tensor) -> Tensor:
    """Set the values after the end of each clip to zero, as a convolution expects."""
    inside = torch.arange(x.shape[1], device=x.device) < lengths[:, None]
    return x * inside[..., None]


def _convolve(module: PackedConvolution, x: Tensor) -> Tensor:
    """Apply the convolution of kernel 3 and padding 1 to x [n, length, in], as one GEMM."""
    beside = F.pad(x, (0, 0, 1, 1))
    count = num_conv_outputs(x.shape[1], module.stride)
    ends = [place + module.stride * (count - 1) + 1 for place in range(AUDIO_KERNEL)]
    windows = [beside[:, place : end : module.stride] for place, end in enumerate(ends)]
    return F.linear(
        torch.cat(windows, dim=-1), module.weight.transpose(1, 2).flatten(1), module.bias
    )
