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

# Empirically pruned step sampling (EPSS): times of the steps, in units of 1/32.
EPSS = {
    5: (0, 2, 4, 8, 16, 32),
    6: (0, 2, 4, 6, 8, 16, 32),
    7: (0, 2, 4, 6, 8, 16, 24, 32),
    10: (0, 2, 4, 6, 8, 12, 16, 20, 24, 28, 32),
    12: (0, 2, 4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32),
    16: (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32),
}


def compute_epss_schedule(steps: int, dtype: torch.dtype) -> Tensor:
    """Return the base schedule: `steps + 1` times in [0, 1], evenly spaced without EPSS table."""
    if steps in EPSS:
        return torch.tensor(EPSS[steps], dtype=dtype) / 32
    return torch.linspace(0, 1, steps + 1, dtype=dtype)


def apply_sway(t: Tensor) -> Tensor:
    """Apply sway sampling with coefficient -1: t - (cos(pi t / 2) - 1 + t).

    Every operation is evaluated in the dtype of t: the rounding in bfloat16 is part of the released
    schedule.
    """
    return t + -1.0 * (torch.cos(math.pi / 2 * t) - 1 + t)


@lru_cache
def compute_sway_schedule(steps: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return the times [steps + 1] of a sampler; cached, so that a step copies nothing."""
    return apply_sway(compute_epss_schedule(steps, dtype)).to(device)


@dataclass(frozen=True)
class Sampling:
    """Sampling parameters: guidance strength `cfg`, scale and temperature of the added noise."""

    cfg: float = 2.0
    sigma: float = 0.25
    temperature: float = 0.0

    @property
    def noise_scale(self) -> float:
        """Return the factor of the noise of a step of length dt, beside sqrt(dt)."""
        return self.sigma * math.sqrt(self.temperature)

    @property
    def is_stochastic(self) -> bool:
        """Whether the sampler adds noise after the initial noise."""
        return self.temperature > 0


class RowSampling:
    """Sampling parameters per row: `cfg` and `noise_scale` [batch], in the dtype of the states."""

    def __init__(self, cfg: Tensor, noise_scale: Tensor) -> None:
        self.cfg, self.noise_scale = cfg[:, None, None], noise_scale[:, None, None]
        self.is_stochastic = bool((noise_scale > 0).any())


AnySampling = Sampling | RowSampling


class CFM(nn.Module):
    """The flow model and its sampler."""

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
        sampling: AnySampling,
    ) -> Tensor:
        """Sample patches [batch, patch, latent]: the last state of `compute_trajectory`."""
        return self.compute_trajectory(hidden, history, y0, sde_noise, sampling)[-1]

    def compute_trajectory(
        self,
        hidden: Tensor,
        history: Tensor,
        y0: Tensor,
        sde_noise: Tensor | None,
        sampling: AnySampling,
    ) -> list[Tensor]:
        """Return the states before each step and after the last, each [batch, patch, latent].

        Args:
            hidden: Condition [batch, condition].
            history: Latents before the patch [batch, past, latent].
            y0: Initial noise [batch, patch, latent].
            sde_noise: Noise of the steps [batch, steps, patch, latent], read only where
                `sampling.is_stochastic`.
            sampling: Guidance and noise, for all rows or for each.
        """
        times = compute_sway_schedule(self.steps, y0.dtype, y0.device)
        heads = self._embed_heads(hidden, times[:-1])
        past = self.model.x_embedder(history).repeat(2, 1, 1)
        states = [y0]
        for step, dt in enumerate(times.diff()):
            y = states[-1] + self._guide_velocity(heads[step], past, states[-1], sampling.cfg) * dt
            if sampling.is_stochastic:
                assert sde_noise is not None
                scale = sampling.noise_scale * dt.sqrt()
                y = y + scale * sde_noise[:, step]
            states.append(y)
        return states

    def _embed_heads(self, hidden: Tensor, times: Tensor) -> Tensor:
        """Return head tokens [steps, 2 * batch, width]: conditioned rows, then null rows."""
        pair = torch.cat((hidden, torch.zeros_like(hidden)))
        return self.model.t_embedder(times)[:, None] + self.model.c_embedder(pair)

    def _guide_velocity(self, head: Tensor, past: Tensor, y: Tensor, cfg: float | Tensor) -> Tensor:
        """Return the velocity v + cfg (v - v_null); the null condition keeps the history."""
        tokens = torch.cat((past, self.model.x_embedder(y).repeat(2, 1, 1)), dim=1)
        v, v_null = self.model.compute_velocity(head, tokens, y.shape[1]).chunk(2)
        return v + (v - v_null) * cfg
