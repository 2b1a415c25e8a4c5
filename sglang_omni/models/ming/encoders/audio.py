"""The audio encoder: a Whisper-style tower and a convolutional projector, in plain PyTorch.

Clips are packed one after the other without padding. A convolution gathers its input rows by
index, and reads zeros beyond the ends of a clip.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sglang_omni.models.ming.config import (
    AUDIO_KERNEL,
    AudioEncoderConfig,
    EncoderConfig,
    read_encoder_config,
)
from sglang_omni.models.ming.encoders.attention import SegmentAttention, Segments
from sglang_omni.models.ming.encoders.loading import build_audio_filler, fill_from_checkpoint
from sglang_omni.models.ming.encoders.mel import count_mel_frames
from sglang_omni.models.ming.media_rules import MEL_HOP, SAMPLE_RATE
from sglang_omni.models.weights import use_device_and_dtype
from sglang_omni.protocol.errors import InvalidRequest

TOWER_STRIDE = 2
Lengths = tuple[int, ...]


def compute_output_length(length: int, stride: int) -> int:
    """Return the output length of a convolution with kernel 3, padding 1 and this stride."""
    return (length - 1) // stride + 1


def count_feature_rows(samples: int, config: AudioEncoderConfig) -> int:
    """Return the number of feature rows, and thus of tokens, of a clip of `samples` at 16 kHz.

    Raises:
        InvalidRequest: The clip is too short for one frame, or longer than the position table.
    """
    states = compute_output_length(count_mel_frames(samples), TOWER_STRIDE)
    if states > config.n_ctx:
        limit = config.n_ctx * TOWER_STRIDE * MEL_HOP / SAMPLE_RATE
        raise InvalidRequest(
            f"the audio is {samples / SAMPLE_RATE:g} s long; the maximum is {limit:g} s"
        )
    return compute_output_length(states, config.ds_stride)


class PackedConvolution(nn.Module):
    """A convolution with kernel 3 and padding 1 over packed clips, as one matrix product."""

    def __init__(self, size: int, out: int, stride: int = 1) -> None:
        super().__init__()
        self.stride = stride
        self.weight = nn.Parameter(torch.empty(out, size, AUDIO_KERNEL))
        self.bias = nn.Parameter(torch.empty(out))

    def forward(self, x: Tensor, lengths: Lengths) -> tuple[Tensor, Lengths]:
        """Map x [rows, in] of clips of these `lengths` to rows [rows_out, out] and lengths."""
        windows = F.pad(x, (0, 0, 0, 1))[list_window_rows(lengths, self.stride).to(x.device)]
        kernel = self.weight.transpose(1, 2).flatten(1)
        out = F.linear(windows.flatten(1), kernel, self.bias)
        return out, tuple(compute_output_length(length, self.stride) for length in lengths)

    def forward_reference(self, x: Tensor) -> Tensor:
        """Run one clip x [rows, in] through PyTorch's own convolution: the reference."""
        return F.conv1d(x.T, self.weight, self.bias, self.stride, padding=1).T


def list_window_rows(lengths: Lengths, stride: int) -> Tensor:
    """Return the input rows of each output of a convolution with kernel 3: [outputs, 3].

    Positions beyond the ends of a clip map to row `sum(lengths)`, which the caller sets to zero.
    """
    zero_row, start, windows = sum(lengths), 0, []
    for length in lengths:
        centres = torch.arange(0, length, stride)[:, None]
        rows = centres + torch.arange(-1, 2)
        is_inside = (rows >= 0) & (rows < length)
        windows.append(torch.where(is_inside, rows + start, zero_row))
        start += length
    return torch.cat(windows)


class SelfAttention(nn.Module):
    """Full attention within each clip; the key projection has no bias."""

    def __init__(self, config: AudioEncoderConfig, attention: SegmentAttention) -> None:
        super().__init__()
        self.heads, self.attention = config.n_head, attention
        self.query = nn.Linear(config.n_state, config.n_state)
        self.key = nn.Linear(config.n_state, config.n_state, bias=False)
        self.value = nn.Linear(config.n_state, config.n_state)
        self.out = nn.Linear(config.n_state, config.n_state)

    def forward(self, x: Tensor, clips: Segments) -> Tensor:
        """Return [rows, width] of x [rows, width], whose rows belong to `clips`."""
        projections = self.query, self.key, self.value
        q, k, v = (project(x).unflatten(-1, (self.heads, -1)) for project in projections)
        return self.out(self.attention.attend(q, k, v, clips).flatten(1))


class AudioBlock(nn.Module):
    """One pre-norm transformer block."""

    def __init__(self, config: AudioEncoderConfig, attention: SegmentAttention) -> None:
        super().__init__()
        state = config.n_state
        self.attn_ln = nn.LayerNorm(state)
        self.attn = SelfAttention(config, attention)
        self.mlp_ln = nn.LayerNorm(state)
        self.mlp = nn.Sequential(
            nn.Linear(state, 4 * state), nn.GELU(), nn.Linear(4 * state, state)
        )

    def forward(self, x: Tensor, clips: Segments) -> Tensor:
        """Return [rows, width] of x [rows, width], whose rows belong to `clips`."""
        x = x + self.attn(self.attn_ln(x), clips)
        return x + self.mlp(self.mlp_ln(x))


class AudioTower(nn.Module):
    """Two convolutions, stored position embeddings, blocks and the final norm."""

    positional_embedding: Tensor

    def __init__(self, config: AudioEncoderConfig, attention: SegmentAttention) -> None:
        super().__init__()
        state = config.n_state
        self.conv1 = PackedConvolution(config.n_mels, state)
        self.conv2 = PackedConvolution(state, state, TOWER_STRIDE)
        self.register_buffer("positional_embedding", torch.empty(config.n_ctx, state))
        self.blocks = nn.ModuleList(AudioBlock(config, attention) for _ in range(config.n_layer))
        self.ln_post = nn.LayerNorm(state)

    def embed(self, mel: Tensor, lengths: Lengths) -> tuple[Tensor, Lengths]:
        """Return the input of block 0, [states, n_state], for packed log-mels [frames, n_mels]."""
        x, lengths = self.conv1(mel.to(self.conv1.weight.dtype), lengths)
        x, lengths = self.conv2(F.gelu(x), lengths)
        positions = [self.positional_embedding[:length] for length in lengths]
        return F.gelu(x) + torch.cat(positions), lengths

    def forward(self, mel: Tensor, lengths: Lengths) -> tuple[Tensor, Lengths]:
        """Return states [states, n_state] of packed log-mels, and the number of states per clip."""
        x, lengths = self.embed(mel, lengths)
        clips = Segments.from_lengths(lengths, x.device)
        for block in self.blocks:
            x = block(x, clips)
        return self.ln_post(x), lengths


class AudioProjector(nn.ModuleDict):
    """Convolution, GELU, linear; the other indices of the checkpoint have no weights."""

    def __init__(self, config: AudioEncoderConfig, hidden: int) -> None:
        convolution = PackedConvolution(config.n_state, hidden, config.ds_stride)
        super().__init__({"0": convolution, "3": nn.Linear(hidden, hidden)})

    def forward(self, x: Tensor, lengths: Lengths) -> tuple[Tensor, Lengths]:
        """Return features [rows, hidden] of states [rows, width], and the clips' new lengths."""
        x, lengths = self["0"](x, lengths)
        return self["3"](F.gelu(x)), lengths


class AudioEncoder(nn.Module):
    """The tower and its projector to the thinker, under the tensor names of the checkpoint."""

    def __init__(self, config: EncoderConfig, attention: SegmentAttention) -> None:
        super().__init__()
        self.config, self.attention = config, attention
        self.audio = AudioTower(config.audio, attention)
        self.linear_proj_audio = AudioProjector(config.audio, config.hidden_size)

    def forward(self, mels: Sequence[Tensor]) -> list[Tensor]:
        """Return unit-norm features [rows, hidden] for the log-mel [frames, n_mels] of each clip.

        Clips do not influence each other. Check their lengths with `count_feature_rows` first.
        """
        states, lengths = self.audio(torch.cat(list(mels)), tuple(len(mel) for mel in mels))
        projected, rows = self.linear_proj_audio(states, lengths)
        normalized = F.normalize(projected.float(), dim=-1).to(projected.dtype)
        return list(normalized.split(list(rows)))


def load_audio(
    checkpoint: Path, attention: SegmentAttention, device: torch.device, dtype: torch.dtype
) -> AudioEncoder:
    """Load the audio encoder of a checkpoint; raise `CheckpointError` if it does not fit."""
    config = read_encoder_config(checkpoint)
    with use_device_and_dtype(device, dtype):
        encoder = AudioEncoder(config, attention)
    fill_from_checkpoint(checkpoint, build_audio_filler(encoder, config))
    return encoder.eval().requires_grad_(False)
