"""Conditional flow matching: the time schedule and the guided sampler.

The convention is x0 = noise, x1 = data, velocity = x1 - x0.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor, nn

from sglang_omni.models.ming.config import DiTConfig
from sglang_omni.models.ming.speech.dit import DiT

# EPSS tables (empirically pruned step sampling), in units of 1/32.
EPSS = {
    5: (0, 2, 4, 8, 16, 32),
    6: (0, 2, 4, 6, 8, 16, 32),
    7: (0, 2, 4, 6, 8, 16, 24, 32),
    10: (0, 2, 4, 6, 8, 12, 16, 20, 24, 28, 32),
    12: (0, 2, 4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32),
    16: (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32),
}


def compute_epss_schedule(steps: int, dtype: torch.dtype) -> Tensor:
    """Base schedule of `steps` + 1 times in [0, 1]; even spacing where EPSS has no table."""
    if steps in EPSS:
        return torch.tensor(EPSS[steps], dtype=dtype) / 32
    return torch.linspace(0, 1, steps + 1, dtype=dtype)


def apply_sway(t: Tensor) -> Tensor:
    """Sway sampling with coefficient -1: t - (cos(pi t / 2) - 1 + t).

    Evaluated op by op in the dtype of t, because in bf16 the rounding of every step is part of
    the released schedule.
    """
    return t + -1.0 * (torch.cos(math.pi / 2 * t) - 1 + t)


@lru_cache
def compute_sway_schedule(steps: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Times of a sampler with `steps` steps, [steps + 1]; cached so that a step copies nothing."""
    return apply_sway(compute_epss_schedule(steps, dtype)).to(device)


@dataclass(frozen=True)
class Sampling:
    """Strength of guidance, and scale and temperature of the noise added on the way."""

    cfg: float = 2.0
    sigma: float = 0.25
    temperature: float = 0.0

    @property
    def noise_scale(self) -> float:
        """What the noise of a step of length dt is multiplied with, beside sqrt(dt)."""
        return self.sigma * math.sqrt(self.temperature)

    @property
    def stochastic(self) -> bool:
        """Whether the sampler needs noise after the initial one."""
        return self.temperature > 0


class RowSampling:
    """How each row of a batch is sampled: `cfg` and `noise_scale` [batch], in the states' dtype."""

    def __init__(self, cfg: Tensor, noise_scale: Tensor) -> None:
        self.cfg, self.noise_scale = cfg[:, None, None], noise_scale[:, None, None]
        self.stochastic = bool((noise_scale > 0).any())


AnySampling = Sampling | RowSampling


class CFM(nn.Module):
    """The flow model with its sampler."""

    def __init__(self, config: DiTConfig, condition: int, steps: int) -> None:
        super().__init__()
        self.model = DiT(config, condition)
        self.steps = steps

    def sample(
        self,
        hidden: Tensor,
        history: Tensor,
        y0: Tensor,
        sde_noise: Tensor | None,
        how: AnySampling,
    ) -> Tensor:
        """Sample patches [batch, patch, latent]; see `trajectory`, whose last state this is."""
        return self.trajectory(hidden, history, y0, sde_noise, how)[-1]

    def trajectory(
        self,
        hidden: Tensor,
        history: Tensor,
        y0: Tensor,
        sde_noise: Tensor | None,
        how: AnySampling,
    ) -> list[Tensor]:
        """States before each step and after the last, each [batch, patch, latent].

        hidden [batch, condition] conditions, history [batch, past, latent] precedes the patch,
        y0 [batch, patch, latent] is the initial noise, sde_noise [batch, steps, patch, latent] is
        read only where `how.stochastic`.
        """
        times = compute_sway_schedule(self.steps, y0.dtype, y0.device)
        heads = self._heads(hidden, times[:-1])
        past = self.model.x_embedder(history).repeat(2, 1, 1)
        states = [y0]
        for step, dt in enumerate(times.diff()):
            y = states[-1] + self._velocity(heads[step], past, states[-1], how.cfg) * dt
            if how.stochastic:
                assert sde_noise is not None
                scale = how.noise_scale * dt.sqrt()
                y = y + scale * sde_noise[:, step]
            states.append(y)
        return states

    def _heads(self, hidden: Tensor, times: Tensor) -> Tensor:
        """Head tokens [steps, 2 * batch, width]: the conditioned rows, then the null rows."""
        pair = torch.cat((hidden, torch.zeros_like(hidden)))
        return self.model.t_embedder(times)[:, None] + self.model.c_embedder(pair)

    def _velocity(self, head: Tensor, past: Tensor, y: Tensor, cfg: float | Tensor) -> Tensor:
        """Guided velocity v + cfg (v - v_null); the null condition keeps the history."""
        tokens = torch.cat((past, self.model.x_embedder(y).repeat(2, 1, 1)), dim=1)
        v, v_null = self.model.velocity(head, tokens, y.shape[1]).chunk(2)
        return v + (v - v_null) * cfg
