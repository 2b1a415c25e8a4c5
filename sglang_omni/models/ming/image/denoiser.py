"""The diffusion transformer behind two methods, so that a faster one can take its place."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

MIN_NORM, ROW_NORM = 1e-12, 1000.0


class Denoiser(Protocol):
    """Predicts the velocity of latents. Latents are [channels, height, width]."""

    def prepare(self, rows: Tensor, reference: Tensor | None) -> Any:
        """Return what stays the same in every step of one branch.

        Args:
            rows: Condition rows [rows, width], before their normalisation.
            reference: Latents of a reference image, or None.
        """

    def predict(
        self, branches: Sequence[Sequence[Any]], latents: Tensor, tau: Tensor
    ) -> Sequence[Tensor]:
        """Return the velocities of each image, float32 [branches, channels, height, width].

        Args:
            branches: The prepared branches of each image. Those of one image have equally many rows
                and the same reference; images may have different numbers of rows.
            latents: Float32 [images, channels, height, width].
            tau: One minus the noise level of each image, float32 [images], on the CPU.
        """


@dataclass(frozen=True)
class PlainBranch:
    """Normalised rows, and the latents of the reference image in the model's dtype."""

    rows: Tensor
    reference: Tensor | None


def normalize_rows(rows: Tensor) -> Tensor:
    """Return rows of norm 1000; zero rows stay zero."""
    return F.normalize(rows, dim=-1, eps=MIN_NORM) * ROW_NORM


class DiffusersDenoiser:
    """The plain reference: the transformer class of diffusers."""

    def __init__(self, transformer: Any) -> None:
        self._transformer = transformer
        self._dtype = transformer.all_x_embedder["2-1"].weight.dtype

    def prepare(self, rows: Tensor, reference: Tensor | None) -> PlainBranch:
        """See `Denoiser`."""
        normalized = normalize_rows(rows).to(self._dtype)
        return PlainBranch(normalized, None if reference is None else reference.to(self._dtype))

    @torch.no_grad()
    def predict(
        self, branches: Sequence[Sequence[PlainBranch]], latents: Tensor, tau: Tensor
    ) -> Sequence[Tensor]:
        """See `Denoiser`. A reference image is a second frame, whose prediction is dropped."""
        images = zip(latents.to(self._dtype), branches, strict=True)
        frames = [_add_reference(x, branch) for x, group in images for branch in group]
        rows = [branch.rows for group in branches for branch in group]
        counts = torch.tensor([len(group) for group in branches])
        taus = tau.repeat_interleave(counts).to(latents.device)
        (out,) = self._transformer(frames, taus, rows, return_dict=False)
        return torch.stack([x[:, 0] for x in out]).float().split(counts.tolist())


def _add_reference(latents: Tensor, branch: PlainBranch) -> Tensor:
    """Return [channels, frames, height, width] with one frame, or two with a reference."""
    frames = [latents] if branch.reference is None else [latents, branch.reference]
    return torch.stack(frames, dim=1)
