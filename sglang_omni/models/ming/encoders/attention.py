"""Full attention within segments of a packed sequence, by one of several kernels.

A kernel is chosen once, when an encoder is built, by name or by what the device offers, and never
changes afterwards. Every kernel is held to `sdpa`, the plain one.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from sglang_omni.protocol.errors import ConfigError


@dataclass(frozen=True)
class Segments:
    """Which rows attend to each other: `lengths` on the host, `bounds` int32 [segments + 1] on the
    device, and the `longest` length. Rows behind the last bound belong to no segment."""

    lengths: tuple[int, ...]
    bounds: Tensor
    longest: int

    @classmethod
    def of(cls, lengths: Sequence[int], device: torch.device) -> "Segments":
        """Segments of these lengths, one after the other from row 0."""
        bounds = torch.tensor(list(accumulate(lengths, initial=0)), dtype=torch.int32)
        longest = max(lengths, default=0)
        return cls(tuple(lengths), bounds.to(device, non_blocking=True), longest)


BACKENDS = ("sdpa", "cudnn", "varlen", "mixed")
# From here on a GPU is busy for longer than its host needs to launch the work.
LONG_SEGMENT = 2048

# Queries, keys and values [rows, heads, head_dim], perhaps strided, to outputs of that shape. The
# outputs of rows in no segment are undefined.
Attend = Callable[[Tensor, Tensor, Tensor, Segments], Tensor]


@dataclass(frozen=True)
class SegmentAttention:
    """A chosen kernel. A `capturable` one reads the segments on the device alone, so that one
    CUDA graph serves any segments; those of `eager_from` rows and more it runs faster outside."""

    name: str
    attend: Attend
    capturable: bool
    eager_from: float = math.inf


def sdpa(q: Tensor, k: Tensor, v: Tensor, segments: Segments) -> Tensor:
    """PyTorch's attention, one call for each run of segments of equal length."""
    out, start = torch.empty(q.shape, dtype=q.dtype, device=q.device), 0
    for length, run in groupby(segments.lengths):
        count = len(list(run))
        rows = slice(start, start + count * length)
        batch = (x[rows].unflatten(0, (count, length)).transpose(1, 2) for x in (q, k, v))
        result = F.scaled_dot_product_attention(*batch)
        out[rows] = result.transpose(1, 2).flatten(0, 1)
        start = rows.stop
    return out


def _forced(backend: SDPBackend) -> Attend:
    """`sdpa` by one of PyTorch's kernels and no other."""

    def attend(q: Tensor, k: Tensor, v: Tensor, segments: Segments) -> Tensor:
        with sdpa_kernel(backend):
            return sdpa(q, k, v, segments)

    return attend


def _load_varlen() -> Attend:
    from torch.nn.attention.varlen import varlen_attn

    def attend(q: Tensor, k: Tensor, v: Tensor, segments: Segments) -> Tensor:
        bounds, longest = segments.bounds, segments.longest
        out = varlen_attn(q, k, v, bounds, bounds, longest, longest)
        assert isinstance(out, Tensor)
        return out

    return attend


def _load_mixed() -> Attend:
    short, long = _load_varlen(), _forced(SDPBackend.CUDNN_ATTENTION)

    def attend(q: Tensor, k: Tensor, v: Tensor, segments: Segments) -> Tensor:
        # A captured run knows no lengths, so its segments are never taken for long ones.
        is_long = min(segments.lengths, default=0) >= LONG_SEGMENT
        return (long if is_long else short)(q, k, v, segments)

    return attend


def default_backend(device: torch.device, dtype: torch.dtype, head_dim: int) -> str:
    """`mixed` for half precision and heads in multiples of 8 on CUDA, which is all it knows;
    elsewhere `sdpa`, which knows everything."""
    half = dtype in (torch.float16, torch.bfloat16)
    return "mixed" if device.type == "cuda" and half and head_dim % 8 == 0 else "sdpa"


def load_attention(name: str) -> SegmentAttention:
    """The kernel `name`, one of `BACKENDS`. Raises `ConfigError` for another name.

    `varlen` is FlashAttention 2 over packed segments. `cudnn` takes one call for each length and
    is a third faster over long segments. `mixed` is `cudnn` where all segments are long, else
    `varlen`, and runs long segments outside of graphs.
    """
    match name:
        case "sdpa":
            return SegmentAttention(name, sdpa, capturable=False)
        case "cudnn":
            return SegmentAttention(name, _forced(SDPBackend.CUDNN_ATTENTION), capturable=False)
        case "varlen":
            return SegmentAttention(name, _load_varlen(), capturable=True)
        case "mixed":
            return SegmentAttention(name, _load_mixed(), capturable=True, eager_from=LONG_SEGMENT)
    raise ConfigError(f"attention {name!r} is not one of {', '.join(BACKENDS)}")
