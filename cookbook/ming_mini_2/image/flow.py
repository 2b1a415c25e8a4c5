"""The loss of a step, and drawing with the same modules: noise levels and guidance of the product.

Latents at noise level s are `s * noise + (1 - s) * latents`; the velocity leads from noise to
latents.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from cookbook.ming_mini_2.image.velocity import Conditions
from sglang_omni.models.ming.image.schedule import compute_sigmas

NO_CONDITION = 0.1
"""Share of the examples that are trained without condition rows, for guidance."""
SHIFT = 3.0
"""Of the product's schedule; half of the noise levels are as dense as its steps."""
Predict = Callable[[Tensor, Tensor, Conditions], Tensor]
"""Velocities [N, 16, h, w] of latents, of times [N], and of conditions."""


def draw_noise_levels(count: int, generator: torch.Generator) -> Tensor:
    """Return noise levels [count] in [0, 1]: half uniform, half as the product's steps lie."""
    device = generator.device
    u = torch.rand(count, generator=generator, device=device)
    even = torch.rand(count, generator=generator, device=device) < 0.5
    return torch.where(even, u, SHIFT * u / (1 + (SHIFT - 1) * u))


def flow_loss(
    predict: Predict,
    target: Tensor,
    rows: Tensor,
    reference: Tensor | None,
    generator: torch.Generator,
) -> Tensor:
    """Return the mean squared error of the velocities of `target` [N, 16, h, w]."""
    device = target.device
    level = draw_noise_levels(len(target), generator)
    noise = torch.randn(target.shape, generator=generator, device=device)
    kept = torch.rand(len(target), 1, 1, generator=generator, device=device) >= NO_CONDITION
    latents = torch.lerp(target, noise, level[:, None, None, None])
    made = predict(latents, 1 - level, Conditions(rows * kept, reference))
    return F.mse_loss(made.float(), target - noise)


@dataclass(frozen=True)
class DrawingPlan:
    """How pictures are drawn: the steps, the guidance and the seed of the first."""

    scheduler: Mapping[str, Any]
    steps: int = 30
    guidance: float = 2.0
    seed: int = 0


@torch.no_grad()
def draw_latents(
    predict: Predict,
    rows: Tensor,
    reference: Tensor | None,
    shape: tuple[int, ...],
    how: DrawingPlan,
) -> Tensor:
    """Return latents of `shape` [N, 16, h, w], drawn as the product draws them."""
    sigmas = compute_sigmas(dict(how.scheduler), how.steps, (shape[2], shape[3]))
    noises = [
        torch.randn(1, *shape[1:], generator=torch.Generator().manual_seed(how.seed + index))
        for index in range(shape[0])
    ]
    x = torch.cat(noises).to(rows.device)
    conditions = Conditions(rows, reference)
    nothing = Conditions(torch.zeros_like(rows), reference)
    for sigma, following in zip(sigmas[:-1].tolist(), sigmas[1:].tolist(), strict=True):
        if sigma == following:
            continue
        tau = torch.full((len(x),), 1 - sigma, device=x.device)
        velocity = predict(x, tau, conditions)
        if how.guidance > 1:
            velocity = velocity + how.guidance * (velocity - predict(x, tau, nothing))
        x = x + (sigma - following) * velocity
    return x
