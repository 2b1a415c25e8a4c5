"""Full attention within the segments of a packed sequence, by one of several backends.

The backend is selected once, when an encoder is built, by name or by device, and never changes
afterwards. Tests compare every backend with `attend_sdpa`, the plain one.
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
    """Groups of adjacent rows that attend to each other.

    `lengths` are the segment lengths, on the host. `bounds` int32 [segments + 1] are their
    cumulative sums, on the device. Rows after the last bound belong to no segment.
    """

    lengths: tuple[int, ...]
    bounds: Tensor
    max_length: int

    @classmethod
    def from_lengths(cls, lengths: Sequence[int], device: torch.device) -> "Segments":
        """Return segments of these lengths, one after the other from row 0."""
        bounds = torch.tensor(list(accumulate(lengths, initial=0)), dtype=torch.int32)
        max_length = max(lengths, default=0)
        return cls(tuple(lengths), bounds.to(device, non_blocking=True), max_length)


BACKENDS = ("sdpa", "cudnn", "varlen", "mixed")
# For segments of this length or more, GPU time exceeds the time the host needs for launches.
MIN_LONG_SEGMENT = 2048

# Maps queries, keys and values [rows, heads, head_dim], which may be strided, to outputs of that
# shape. Outputs of rows outside all segments are undefined.
AttentionFunction = Callable[[Tensor, Tensor, Tensor, Segments], Tensor]


@dataclass(frozen=True)
class SegmentAttention:
    """A selected attention backend.

    An `is_capturable` backend reads the segments only on the device, so that one CUDA graph serves
    any segments. If all segments have at least `min_eager_rows` rows, it is faster outside graphs.
    """

    name: str
    attend: AttentionFunction
    is_capturable: bool
    min_eager_rows: float = math.inf


def attend_sdpa(q: Tensor, k: Tensor, v: Tensor, segments: Segments) -> Tensor:
    """Attend with PyTorch's `scaled_dot_product_attention`, one call per run of equal lengths."""
    out, start = torch.empty(q.shape, dtype=q.dtype, device=q.device), 0
    for length, run in groupby(segments.lengths):
        count = len(list(run))
        rows = slice(start, start + count * length)
        batch = (x[rows].unflatten(0, (count, length)).transpose(1, 2) for x in (q, k, v))
        result = F.scaled_dot_product_attention(*batch)
        out[rows] = result.transpose(1, 2).flatten(0, 1)
        start = rows.stop
    return out


def _use_backend(backend: SDPBackend) -> AttentionFunction:
    """Return `attend_sdpa` restricted to one of PyTorch's backends."""

    def attend(q: Tensor, k: Tensor, v: Tensor, segments: Segments) -> Tensor:
        with sdpa_kernel(backend):
            return attend_sdpa(q, k, v, segments)

    return attend


def _load_varlen() -> AttentionFunction:
    from torch.nn.attention.varlen import varlen_attn

    def attend(q: Tensor, k: Tensor, v: Tensor, segments: Segments) -> Tensor:
        bounds, max_length = segments.bounds, segments.max_length
        out = varlen_attn(q, k, v, bounds, bounds, max_length, max_length)
        assert isinstance(out, Tensor)
        return out

    return attend


def _load_mixed() -> AttentionFunction:
    short, long = _load_varlen(), _use_backend(SDPBackend.CUDNN_ATTENTION)

    def attend(q: Tensor, k: Tensor, v: Tensor, segments: Segments) -> Tensor:
        # Captured runs have no lengths, so their segments never count as long.
        is_long = min(segments.lengths, default=0) >= MIN_LONG_SEGMENT
        return (long if is_long else short)(q, k, v, segments)

    return attend


def select_backend(device: torch.device, dtype: torch.dtype, head_dim: int) -> str:
    """Return `mixed` for half precision and head sizes in multiples of 8 on CUDA, else `sdpa`.

    `mixed` supports nothing else; `sdpa` supports everything.
    """
    is_half = dtype in (torch.float16, torch.bfloat16)
    return "mixed" if device.type == "cuda" and is_half and head_dim % 8 == 0 else "sdpa"


def load_attention(name: str) -> SegmentAttention:
    """Load the attention backend `name`, one of `BACKENDS`.

    `varlen` is FlashAttention 2 over packed segments. `cudnn` needs one call per run of equal
    lengths and is a third faster for long segments. `mixed` is `cudnn` if all segments are long,
    else `varlen`, and runs long segments outside graphs.

    Raises:
        ConfigError: The name is unknown.
    """
    match name:
        case "sdpa":
            return SegmentAttention(name, attend_sdpa, is_capturable=False)
        case "cudnn":
            return SegmentAttention(
                name, _use_backend(SDPBackend.CUDNN_ATTENTION), is_capturable=False
            )
        case "varlen":
            return SegmentAttention(name, _load_varlen(), is_capturable=True)
        case "mixed":
            return SegmentAttention(
                name, _load_mixed(), is_capturable=True, min_eager_rows=MIN_LONG_SEGMENT
            )
    raise ConfigError(f"attention backend {name!r} is unknown; use one of {', '.join(BACKENDS)}")
