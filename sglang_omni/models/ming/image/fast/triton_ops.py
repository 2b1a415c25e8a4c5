"""`BlockOps` by fused Triton kernels. The plain form is `TorchOps`."""

from typing import Any

import torch
import triton
from torch import Tensor

from sglang_omni.models.ming.image.fast.block_triton import (
    add_norm_kernel,
    gate_kernel,
    norm_kernel,
    quantize_kernel,
    rotate_kernel,
)
from sglang_omni.models.ming.image.fast.ops import RowNorm
from sglang_omni.models.ming.image.fast.rope import Rope
from sglang_omni.models.ming.image.fast.rows import FP8, QuantizedRows, Rows

GATE_BLOCK = 2048


class TritonOps:
    """Implements `BlockOps` on a GPU."""

    def norm(self, x: Tensor, norm: RowNorm, *, fp8: bool) -> Rows:
        """See `BlockOps`."""
        assert x.is_contiguous()
        rows, width = x.shape
        out, scales = _allocate(x, width, fp8)
        norm_kernel[(rows,)](
            x,
            norm.gain,
            norm.scale,
            out,
            scales,
            _count_rows_per_item(rows, norm),
            norm.eps,
            HAS_SCALE=norm.scale is not None,
            FP8=fp8,
            **_choose_block(width),
        )
        return _wrap(out, scales)

    def add(self, x: Tensor, y: Tensor, norm: RowNorm) -> None:
        """See `BlockOps`."""
        self._add(x, y, norm, None, None, None)

    def add_and_norm(
        self, x: Tensor, y: Tensor, norm: RowNorm, following: RowNorm, *, fp8: bool
    ) -> Rows:
        """See `BlockOps`. Both norms have a scale, or none has."""
        assert (norm.scale is None) == (following.scale is None)
        assert norm.eps == following.eps
        out, scales = _allocate(x, x.shape[1], fp8)
        self._add(x, y, norm, following, out, scales)
        return _wrap(out, scales)

    def _add(
        self,
        x: Tensor,
        y: Tensor,
        norm: RowNorm,
        following: RowNorm | None,
        out: Tensor | None,
        scales: Tensor | None,
    ) -> None:
        assert x.is_contiguous()
        assert y.is_contiguous()
        rows, width = x.shape
        add_norm_kernel[(rows,)](
            x,
            y,
            norm.gain,
            norm.scale,
            None if following is None else following.gain,
            None if following is None else following.scale,
            out,
            scales,
            _count_rows_per_item(rows, norm),
            norm.eps,
            HAS_SCALE=norm.scale is not None,
            HAS_NEXT=following is not None,
            FP8=scales is not None,
            **_choose_block(width),
        )

    def rotate(self, qkv: Tensor, gains: Tensor, eps: float, rope: Rope) -> None:
        """See `BlockOps`."""
        assert qkv.is_contiguous()
        rows, _, heads, width = qkv.shape
        rotate_kernel[rows, 2](
            qkv,
            gains,
            rope.cos,
            rope.sin,
            len(rope.cos),
            eps,
            HEADS=heads,
            WIDTH=width,
            BLOCK_HEADS=triton.next_power_of_2(heads),
            BLOCK=triton.next_power_of_2(width),
            num_warps=4,
        )

    def gate(self, gate_up: Tensor, *, fp8: bool) -> Rows:
        """See `BlockOps`."""
        assert gate_up.is_contiguous()
        rows, width = len(gate_up), gate_up.shape[1] // 2
        out, scales = _allocate(gate_up, width, fp8)
        chosen = _choose_block(width)
        if not fp8:
            chosen["BLOCK"] = min(chosen["BLOCK"], GATE_BLOCK)
            chosen["num_warps"] = 4
        grid = rows, triton.cdiv(width, chosen["BLOCK"])
        gate_kernel[grid](gate_up, out, scales, FP8=fp8, **chosen)
        return _wrap(out, scales)

    def quantize(self, x: Tensor) -> QuantizedRows:
        """See `BlockOps`."""
        assert x.is_contiguous()
        rows, width = x.shape
        out, scales = _allocate(x, width, True)
        quantize_kernel[(rows,)](x, out, scales, **_choose_block(width))
        assert scales is not None
        return QuantizedRows(out, scales)


def _allocate(x: Tensor, width: int, fp8: bool) -> tuple[Tensor, Tensor | None]:
    """Return room for rows like those of `x`, and for their scales in FP8."""
    out = torch.empty(len(x), width, dtype=FP8 if fp8 else x.dtype, device=x.device)
    return out, torch.empty(len(x), 1, device=x.device) if fp8 else None


def _wrap(out: Tensor, scales: Tensor | None) -> Rows:
    return out if scales is None else QuantizedRows(out, scales)


def _count_rows_per_item(rows: int, norm: RowNorm) -> int:
    return rows if norm.scale is None else rows // len(norm.scale)


def _choose_block(width: int) -> dict[str, Any]:
    """Return the width as a constant, a block that holds it, and the number of warps."""
    block = triton.next_power_of_2(width)
    return {"WIDTH": width, "BLOCK": block, "num_warps": max(1, min(16, block // 512))}
