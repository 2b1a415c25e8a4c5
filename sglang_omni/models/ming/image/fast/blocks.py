"""Evaluate a stack of blocks."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from sglang_omni.models.ming.image.fast.attention import attend
from sglang_omni.models.ming.image.fast.ops import BlockOps, RowNorm
from sglang_omni.models.ming.image.fast.rope import Rope
from sglang_omni.models.ming.image.fast.rows import Rows
from sglang_omni.models.ming.image.fast.weights import Block


@dataclass(frozen=True)
class BlockRunner:
    """Evaluates blocks. With `fp8`, their weights are in FP8."""

    ops: BlockOps
    fp8: bool

    def run(
        self,
        x: Tensor,
        blocks: Sequence[Block],
        modulations: Tensor | None,
        rope: Rope,
        num_kept: int | None = None,
    ) -> Tensor:
        """Return the rows after the blocks. `x` is overwritten.

        Args:
            x: [items, positions, width].
            blocks: The blocks.
            modulations: [blocks, 4, items, width], or None for blocks without.
            rope: Tables of the positions.
            num_kept: Number of positions, from the first, whose result is wanted; None for all.
                The last block computes no others.
        """
        items, positions, width = x.shape
        kept = num_kept or positions
        rows = x.flatten(0, 1)
        norms = [_list_norms(block, modulations, i) for i, block in enumerate(blocks)]
        h = self.ops.norm(rows, norms[0][0], fp8=self.fp8)
        for index, block in enumerate(blocks):
            _, norm, ffn_norm, norm2 = norms[index]
            is_last = index == len(blocks) - 1
            num_queries = kept if is_last else positions
            y = self._attend(h, block, rope, items, num_queries)
            if num_queries < positions:
                rows = rows.view(items, positions, width)[:, :num_queries].flatten(0, 1)
            h = self.ops.add_and_norm(rows, y, norm, ffn_norm, fp8=self.fp8)
            y = block.down(self.ops.gate(block.gate_up(h), fp8=self.fp8))
            if is_last:
                self.ops.add(rows, y, norm2)
            else:
                h = self.ops.add_and_norm(rows, y, norm2, norms[index + 1][0], fp8=self.fp8)
        return rows.view(items, kept, width)

    def _attend(self, h: Rows, block: Block, rope: Rope, items: int, num_queries: int) -> Tensor:
        """Return the attention's output [items * num_queries, width]."""
        qkv = block.qkv(h)
        qkv = qkv.view(len(qkv), 3, -1, block.qk_gains.shape[1])
        self.ops.rotate(qkv, block.qk_gains, block.qk_eps, rope)
        out = attend(qkv.unflatten(0, (items, -1)), num_queries)
        return block.out(self.ops.quantize(out) if self.fp8 else out)


def _list_norms(block: Block, modulations: Tensor | None, index: int) -> tuple[RowNorm, ...]:
    """Return the norms before and after the attention, and before and after the feed-forward part.

    A gate scales what the norm after a part returns.
    """
    gains = (block.attention_norm1, block.attention_norm2, block.ffn_norm1, block.ffn_norm2)
    if modulations is None:
        return tuple(RowNorm(gain, block.eps) for gain in gains)
    pairs = zip(gains, modulations[index], strict=True)
    return tuple(RowNorm(gain, block.eps, modulation) for gain, modulation in pairs)
