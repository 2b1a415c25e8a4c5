"""Muon: steps of equal size in all directions of a matrix, for the weights of hidden layers.

The momentum of a matrix is replaced by the nearest matrix with orthogonal rows or columns
(Jordan et al. 2024, kellerjordan.github.io/posts/muon), and scaled so that the size of its elements
does not depend on the matrix's shape (Liu et al. 2025, arXiv:2502.16982).
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

MOMENTUM = 0.95
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Of a step of the Newton-Schulz iteration, for few steps; singular values end in 0.7 to 1.2."""
ITERATIONS = 5
STEP_SIZE = 0.5
"""The root mean square of an element of a step of rate 1; Adam's is 0.2 to 0.4 (Liu et al.)."""


def orthogonalize(matrices: Tensor) -> Tensor:
    """Return matrices [n, rows, columns] with their singular values brought to about one.

    The iteration is stable in bfloat16, which a GPU uses. A matrix of zeros stays.
    """
    wide = matrices.shape[-2] <= matrices.shape[-1]
    x = matrices if wide else matrices.mT
    if x.is_cuda:
        x = x.bfloat16()
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    first, third, fifth = COEFFICIENTS
    for _ in range(ITERATIONS):
        square = x @ x.mT
        x = first * x + (third * square + fifth * square @ square) @ x
    return x if wide else x.mT


class Muon:
    """The optimizer of matrices; those of one shape are stepped at once. Reads nothing on the host.

    `decay` is the share of a weight that a step of rate 1 takes away.
    """

    def __init__(self, weights: Iterable[nn.Parameter], decay: float) -> None:
        self._decay = decay
        shapes: dict[torch.Size, list[Tensor]] = {}
        for weight in weights:
            shapes.setdefault(weight.shape, []).append(weight)
        self._groups = list(shapes.values())
        self._momenta = [torch.zeros_like(torch.stack(group)) for group in self._groups]

    @torch.no_grad()
    def step(self, rate: Tensor, finite: Tensor) -> None:
        """Step down the gradients of the weights; if not `finite` (bool []), nothing changes."""
        for group, momentum in zip(self._groups, self._momenta, strict=True):
            # Stacked, since a weight that took no part in the loss has no gradient.
            slope = torch.stack([torch.zeros_like(w) if w.grad is None else w.grad for w in group])
            slope = torch.where(finite, slope, 0)
            momentum.mul_(torch.where(finite, MOMENTUM, 1.0)).add_(slope)
            aim = orthogonalize(slope + MOMENTUM * momentum)
            used = torch.where(finite, rate, 0)
            size = STEP_SIZE * math.sqrt(max(group[0].shape))
            torch._foreach_mul_(group, 1 - used * self._decay)
            steps = (aim * (used * size)).to(momentum.dtype)
            torch._foreach_sub_(group, steps.unbind(0))

    def state_dict(self) -> dict[str, Any]:
        """Return the state for `load_state_dict`."""
        return {"momenta": self._momenta}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from another's state."""
        for momentum, stored in zip(self._momenta, state["momenta"], strict=True):
            momentum.copy_(stored)
