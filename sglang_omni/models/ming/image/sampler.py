"""Sampling: Euler steps along the predicted velocities, with classifier-free guidance.

Every image has its own state, so images may join and leave a batch between steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from sglang_omni.models.ming.image.denoiser import Denoiser
from sglang_omni.models.ming.image.sizes import Size

CHANNELS = 16


@dataclass
class DenoisingState:
    """One image between two steps.

    Attributes:
        positive: The prepared branch with the condition rows.
        negative: The same with the negative rows; None without guidance.
        guidance: Factor of the difference between both.
        sigmas: Noise levels, float32 [steps + 1].
        latents: Float32 [channels, height, width].
        step: The number of steps done.
    """

    positive: Any
    negative: Any | None
    guidance: float
    sigmas: Tensor
    latents: Tensor
    step: int = 0

    @property
    def num_steps(self) -> int:
        """Return the number of steps that have an effect: steps of length zero come last."""
        return int((self.sigmas[:-1] != self.sigmas[1:]).sum())

    @property
    def is_finished(self) -> bool:
        """Return whether no step is left."""
        return self.step >= self.num_steps

    @property
    def tau(self) -> float:
        """Return one minus the noise level of the next step."""
        return float(1 - self.sigmas[self.step])


def draw_noise(seed: int, latent: Size) -> Tensor:
    """Return the first latents, float32 [channels, height, width], drawn on the CPU."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(1, CHANNELS, *latent, generator=generator)[0]


def open_state(
    denoiser: Denoiser,
    rows: Tensor,
    negative_rows: Tensor,
    reference: Tensor | None,
    guidance: float,
    sigmas: Tensor,
    noise: Tensor,
) -> DenoisingState:
    """Return the state of an image before its first step.

    Args:
        denoiser: The diffusion transformer.
        rows: Condition rows [rows, width].
        negative_rows: Those of the branch that guidance leads away from [rows, width]: zeros for
            an image without a prompt.
        reference: Latents of a reference image, which both branches get.
        guidance: The difference of both branches is added this many times; up to 1, not at all.
        sigmas: Noise levels, float32 [steps + 1].
        noise: The first latents.
    """
    positive = denoiser.prepare(rows, reference)
    negative = denoiser.prepare(negative_rows, reference) if guidance > 1 else None
    return DenoisingState(positive, negative, guidance, sigmas, noise)


def predict_branches(
    denoiser: Denoiser, states: Sequence[DenoisingState]
) -> list[tuple[Tensor, Tensor | None]]:
    """Return the velocities of both branches of each state; all latents have one shape."""
    branches = [
        (state.positive,) if state.negative is None else (state.positive, state.negative)
        for state in states
    ]
    latents = torch.stack([state.latents for state in states])
    tau = torch.tensor([state.tau for state in states])
    velocities = denoiser.predict(branches, latents, tau)
    return [(x[0], x[1] if len(x) == 2 else None) for x in velocities]


def combine_branches(positive: Tensor, negative: Tensor | None, guidance: float) -> Tensor:
    """Return the guided velocity: `positive + guidance * (positive - negative)`."""
    return positive if negative is None else positive + guidance * (positive - negative)


def advance(denoiser: Denoiser, states: Sequence[DenoisingState]) -> None:
    """Do one step of each state in one evaluation. States may be at different steps."""
    for state, branches in zip(states, predict_branches(denoiser, states), strict=True):
        length = state.sigmas[state.step] - state.sigmas[state.step + 1]
        velocity = combine_branches(*branches, state.guidance)
        state.latents = state.latents + length.item() * velocity
        state.step += 1
