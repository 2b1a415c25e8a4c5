"""Ming's image model: implements `ImageModel`."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from sglang_omni.models.image import ImageInput
from sglang_omni.models.ming.image.backend import Backend, select_backend
from sglang_omni.models.ming.image.denoiser import Denoiser, DiffusersDenoiser
from sglang_omni.models.ming.image.fp8_layout import has_fp8_transformer
from sglang_omni.models.ming.image.glyph_text import select_glyph_text
from sglang_omni.models.ming.image.loading import ImageModules, load_image_modules
from sglang_omni.models.ming.image.pixels import resize_output, stretch_reference
from sglang_omni.models.ming.image.sampler import DenoisingState, advance, draw_noise, open_state
from sglang_omni.models.ming.image.schedule import compute_sigmas
from sglang_omni.models.ming.image.sizes import SizePlan, plan_image
from sglang_omni.protocol.errors import ConfigError, InvalidRequest

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass
class MingImage:
    """An image in the making.

    `num_rows` is the number of its condition rows. `previous` are the latents before its last step.
    """

    plan: SizePlan
    num_rows: int
    has_reference: bool
    state: DenoisingState
    previous: Tensor | None = None


def plan_input(image_input: ImageInput, resolutions: Sequence[int]) -> SizePlan:
    """Return the sizes of an image of one of the `resolutions`. Raises `InvalidRequest`."""
    reference = image_input.reference
    return plan_image(
        image_input.size,
        image_input.aspect,
        image_input.resolution,
        None if reference is None else (reference.shape[0], reference.shape[1]),
        resolutions,
    )


def estimate_final(image: MingImage) -> Tensor:
    """Return the latents of an image if its last velocity stayed the same to the end.

    Raises:
        ValueError: The image has done no step.
    """
    state = image.state
    if image.previous is None:
        raise ValueError("an image has no preview before its first step")
    before, now = state.sigmas[state.step - 1], state.sigmas[state.step]
    velocity = (state.latents - image.previous) / (before - now).item()
    return state.latents + now.item() * velocity


class MingImageModel:
    """Implements `ImageModel` with a `denoiser`."""

    def __init__(self, modules: ImageModules, denoiser: Denoiser) -> None:
        self._modules, self.denoiser = modules, denoiser
        self._device = modules.connector.proj_in.weight.device

    @torch.no_grad()
    def start(self, image_input: ImageInput) -> MingImage:
        """See `ImageModel`."""
        plan = plan_input(image_input, self._modules.resolutions)
        rows = self._compute_rows(image_input)
        negative = self._compute_negative_rows(image_input, rows)
        reference = self._encode_reference(image_input.reference, plan)
        sigmas = compute_sigmas(dict(self._modules.scheduler), image_input.steps, plan.latent)
        noise = draw_noise(image_input.seed, plan.latent).to(self._device)
        guidance = image_input.guidance
        state = open_state(self.denoiser, rows, negative, reference, guidance, sigmas, noise)
        return MingImage(plan, len(rows), reference is not None, state)

    def batch_key(self, image: MingImage) -> Hashable:
        """See `ImageModel`. Images of one size and one number of condition rows need no padding."""
        return image.plan.bucket, image.num_rows, image.has_reference

    def advance(self, images: Sequence[MingImage]) -> None:
        """See `ImageModel`."""
        for image in images:
            image.previous = image.state.latents
        advance(self.denoiser, [image.state for image in images])

    def progress(self, image: MingImage) -> tuple[int, int]:
        """See `ImageModel`."""
        return image.state.step, image.state.num_steps

    def preview(self, image: MingImage) -> np.ndarray:
        """See `ImageModel`."""
        latents = estimate_final(image)
        return resize_output(self._modules.vae.decode(latents), image.plan.output)

    def finish(self, image: MingImage) -> np.ndarray:
        """See `ImageModel`."""
        return resize_output(self._modules.vae.decode(image.state.latents), image.plan.output)

    def sample_input(self) -> ImageInput:
        """See `ImageModel`."""
        states = np.zeros(tuple(self._modules.query_rows.shape), np.float32)
        return ImageInput(states, '"Ming"', (256, 1024), None, 512, 2, 2.0, seed=0)

    def _compute_rows(self, image_input: ImageInput) -> Tensor:
        """Return the condition rows [rows, width]; text to show has rows after the others."""
        rows = self._connect(image_input.states)
        text = select_glyph_text(image_input.prompt)
        if text and self._modules.glyphs is not None:
            rows = torch.cat((rows, self._modules.glyphs.compute_rows(text).to(rows.dtype)), dim=1)
        return rows[0]

    def _compute_negative_rows(self, image_input: ImageInput, rows: Tensor) -> Tensor:
        """Return the rows of the negative prompt, as many as `rows`: zeros where nothing is said.

        As in the released model, text to show has zeros in any case.
        """
        negative = torch.zeros_like(rows)
        if image_input.negative_states is not None:
            said = self._connect(image_input.negative_states)[0]
            negative[: len(said)] = said
        return negative

    def _connect(self, query_states: np.ndarray) -> Tensor:
        """Return the condition rows [1, queries, width] of the thinker's states."""
        expected = tuple(self._modules.query_rows.shape)
        if query_states.shape != expected:
            raise InvalidRequest(f"query states must have the shape {list(expected)}")
        states = torch.from_numpy(query_states)
        if states.dtype == torch.uint16:
            states = states.view(torch.bfloat16)
        connected: Tensor = self._modules.connector(states.to(self._device)[None])
        return connected

    def _encode_reference(self, image: np.ndarray | None, plan: SizePlan) -> Tensor | None:
        if image is None:
            return None
        return self._modules.vae.encode(stretch_reference(image, plan.bucket))


def load_image_model(
    checkpoint: Path, device: str, dtype: str, backend: str = "auto", fp8: bool = False
) -> MingImageModel:
    """Load the image model of a checkpoint.

    Args:
        checkpoint: The model folder.
        device: A device of PyTorch.
        dtype: "float32" or "bfloat16".
        backend: "auto", "fast" or "reference"; see `select_backend`.
        fp8: Whether its large weights and their inputs are in FP8; they always are where the
            checkpoint stores them so. Needs the fast back end.

    Raises:
        CheckpointError: The checkpoint is incomplete.
        ConfigError: The dtype or the back end is not supported.
    """
    if dtype not in DTYPES:
        raise ConfigError(f"image dtype {dtype!r} is not one of {', '.join(DTYPES)}")
    fp8 = fp8 or has_fp8_transformer(checkpoint)
    chosen = select_backend(backend, device, fp8=fp8)
    modules = load_image_modules(checkpoint, torch.device(device), DTYPES[dtype])
    return build_image_model(modules, chosen, fp8=fp8)


def build_image_model(
    modules: ImageModules, backend: Backend, *, fp8: bool = False
) -> MingImageModel:
    """Return the model of loaded modules. The fast back end takes the transformer's weights."""
    if backend == "reference":
        return MingImageModel(modules, DiffusersDenoiser(modules.transformer))
    from sglang_omni.models.ming.image.fast.denoiser import FastDenoiser

    denoiser = FastDenoiser(modules.transformer, fp8=fp8)
    return MingImageModel(replace(modules, transformer=None), denoiser)
