"""Scales and gates of the blocks, which depend on the noise level alone.

The levels of a schedule return with every image of its size, so they are computed once.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from sglang_omni.caching.lru_cache import LruCache

MAX_LEVELS = 64
MAX_PERIOD = 10_000


@dataclass(frozen=True)
class Modulation:
    """Scales and gates of a step for some items.

    Attributes:
        blocks: [blocks, 4, items, width]: scale and gate of the attention, then of the
            feed-forward part; refiner blocks come first.
        final: Scale of the final layer [items, width].
    """

    blocks: Tensor
    final: Tensor


class ModulationCache:
    """Computes modulations, and keeps those of the latest noise levels."""

    def __init__(self, transformer: Any) -> None:
        blocks = (*transformer.noise_refiner, *transformer.layers)
        final = transformer.all_final_layer["2-1"].adaLN_modulation[1]
        linears = [*(block.adaLN_modulation[0] for block in blocks), final]
        # One product for all blocks.
        self._weight = torch.cat([linear.weight for linear in linears[:-1]]).detach()
        self._bias = torch.cat([linear.bias for linear in linears[:-1]]).detach()
        self._final, self._embedder = final, transformer.t_embedder.mlp
        self._scale, self._shape = transformer.t_scale, (len(blocks), 4, transformer.dim)
        self._levels: LruCache[float, tuple[Tensor, Tensor]] = LruCache(MAX_LEVELS)

    def compute(self, taus: Sequence[float]) -> Modulation:
        """Return the modulations of items at these times (one minus the noise level)."""
        levels = [self._get(tau) for tau in taus]
        blocks, finals = zip(*levels, strict=True)
        return Modulation(torch.stack(blocks, dim=2), torch.stack(finals))

    def _get(self, tau: float) -> tuple[Tensor, Tensor]:
        level = self._levels.get(tau)
        if level is None:
            level = self._compute_level(tau)
            self._levels.put(tau, level)
        return level

    def _compute_level(self, tau: float) -> tuple[Tensor, Tensor]:
        """Return [blocks, 4, width] and [width]."""
        condition = self._embedder(self._embed_time(tau))
        blocks = F.linear(condition, self._weight, self._bias).view(self._shape).clone()
        blocks[:, ::2] += 1.0
        blocks[:, 1::2].tanh_()
        return blocks, 1.0 + self._final(F.silu(condition))

    def _embed_time(self, tau: float) -> Tensor:
        """Return the sinusoids of a time [width of the embedder], in the model's dtype."""
        weight = self._embedder[0].weight
        half = weight.shape[1] // 2
        # In the order of the reference: angles are large, so their rounding shows.
        indices = torch.arange(half, dtype=torch.float32, device=weight.device)
        angles = tau * self._scale * torch.exp(-math.log(MAX_PERIOD) * indices / half)
        return torch.cat((angles.cos(), angles.sin())).to(weight.dtype)
