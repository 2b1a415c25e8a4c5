"""The encoders over many pictures or clips at once; parameters and numbers are the product's."""

import torch
import torch.nn.functional as F
from torch import Tensor

from sglang_omni.models.ming.encoders import audio, vision_reference
from sglang_omni.models.ming.encoders.audio import AudioEncoder, PackedConvolution, strided
from sglang_omni.models.ming.encoders.grid import Grid, angles, frame_places, sample_positions
from sglang_omni.models.ming.encoders.pixels import MEAN, STD, WHITE
from sglang_omni.models.ming.encoders.rotary import rotate
from sglang_omni.models.ming.encoders.vision_reference import VisionReference


def patchify(pixels: Tensor, side: int, merge: int, time: int) -> Tensor:
    """Patches [n, patches, width] of single-frame pictures [n, height, width, 3] of one size, with
    values of 0 to 255."""
    count, height, width, _ = pixels.shape
    mean, std = (pixels.new_tensor(values, dtype=torch.float32) for values in (MEAN, STD))
    normal = (pixels / WHITE - mean) / std
    unit = side * merge
    split = normal.view(count, height // unit, merge, side, width // unit, merge, side, 3)
    # (picture, row, column, y of merge, x of merge, channel, y, x)
    ordered = split.permute(0, 1, 4, 2, 5, 7, 3, 6)
    frames = ordered.unsqueeze(6).expand(*[-1] * 6, time, -1, -1)
    return frames.reshape(count, height // side * (width // side), -1)


def see(model: VisionReference, pixels: Tensor) -> Tensor:
    """Unit-norm features [n, tokens, hidden] of pictures [n, height, width, 3] of one size."""
    vision, config = model.vision, model.vision.config
    side = config.patch_size
    grid = Grid(1, pixels.shape[1] // side, pixels.shape[2] // side)
    places = frame_places(grid, config, pixels.device)
    patches = patchify(pixels, side, config.spatial_merge_size, config.temporal_patch_size)
    x = vision.patch_embed(patches) + sample_positions(vision.pos_embed.weight, places)
    turns = angles(places, config.head_dim).repeat(len(pixels), 1)
    for block in vision.blocks:
        x = x + _look(block.attn, block.norm1(x), turns)
        x = x + block.mlp(block.norm2(x))
    merged = model.linear_proj(vision.merger(x))
    return F.normalize(merged.float(), dim=-1).view(len(pixels), -1, merged.shape[-1])


def _look(module: vision_reference.Attention, x: Tensor, turns: Tensor) -> Tensor:
    count, patches, _ = x.shape
    q, k, v = module.qkv(x).view(count * patches, 3, module.heads, -1).unbind(1)
    q, k = (rotate(part, turns.cos(), turns.sin()) for part in (q, k))
    q, k, v = (part.view(count, patches, module.heads, -1).transpose(1, 2) for part in (q, k, v))
    return module.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


def hear(model: AudioEncoder, mel: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Unit-norm features [n, rows, hidden] and the tower's states [n, states, n_state] of clips.

    `mel` [n, frames, bins] is padded behind the `lengths` [n] of its clips; what is behind the
    rows of a clip is undefined.
    """
    tower, projector = model.audio, model.linear_proj_audio
    x = F.gelu(_convolve(tower.conv1, _cut(mel, lengths)))
    x = F.gelu(_convolve(tower.conv2, _cut(x, lengths)))
    states = (lengths - 1) // audio.TOWER_STRIDE + 1
    x = x + tower.positional_embedding[: x.shape[1]]
    mask = (torch.arange(x.shape[1], device=x.device) < states[:, None])[:, None, None]
    for block in tower.blocks:
        x = x + _listen(block.attn, block.attn_ln(x), mask)
        x = x + block.mlp(block.mlp_ln(x))
    x = tower.ln_post(x)
    rows = projector["3"](F.gelu(_convolve(projector["0"], _cut(x, states))))
    return F.normalize(rows.float(), dim=-1), x


def rows_of(frames: int, stride: int) -> int:
    """Feature rows of a clip of so many mel frames; `stride` is the projector's."""
    return strided(strided(frames, audio.TOWER_STRIDE), stride)


def _cut(x: Tensor, lengths: Tensor) -> Tensor:
    """Zeros behind the end of each clip, as a convolution finds them there."""
    inside = torch.arange(x.shape[1], device=x.device) < lengths[:, None]
    return x * inside[..., None]


def _convolve(module: PackedConvolution, x: Tensor) -> Tensor:
    kernel = module.weight
    return F.conv1d(
        x.to(kernel.dtype).transpose(1, 2), kernel, module.bias, module.stride, padding=1
    ).transpose(1, 2)


def _listen(module: audio.SelfAttention, x: Tensor, mask: Tensor) -> Tensor:
    projections = module.query, module.key, module.value
    q, k, v = (one(x).unflatten(-1, (module.heads, -1)).transpose(1, 2) for one in projections)
    return module.out(
        F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2)
    )
