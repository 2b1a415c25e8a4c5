"""The fast denoiser: fused products and norms, and nothing computed twice.

The condition rows are refined once per image; image tokens, which both branches of an image share,
are refined once per step; the last block computes only the positions that become pixels.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from sglang_omni.models.ming.image.denoiser import normalize_rows
from sglang_omni.models.ming.image.fast.attention import prefer_fast_attention
from sglang_omni.models.ming.image.fast.blocks import BlockRunner
from sglang_omni.models.ming.image.fast.modulation import Modulation, ModulationCache
from sglang_omni.models.ming.image.fast.ops import BlockOps, TorchOps
from sglang_omni.models.ming.image.fast.pacing import Pacer
from sglang_omni.models.ming.image.fast.rope import (
    LatentGrid,
    Rope,
    RopeCache,
    caption_positions,
    pad_length,
)
from sglang_omni.models.ming.image.fast.weights import take_blocks

PATCH = 2
LAYERS_AHEAD = 4
"""The next step is launched while the GPU still works on this many layers."""


@dataclass(frozen=True)
class FastBranch:
    """A refined caption [padded rows, width], and patches [tokens, features] of a reference."""

    caption: Tensor
    reference: Tensor | None


def load_ops(device: torch.device) -> BlockOps:
    """Return the fused kernels on a GPU, and plain PyTorch elsewhere."""
    if device.type != "cuda":
        return TorchOps()
    from sglang_omni.models.ming.image.fast.triton_ops import TritonOps

    return TritonOps()


class FastDenoiser:
    """Implements `Denoiser`. It takes the weights from diffusers' class, which is then unusable."""

    def __init__(self, transformer: Any, *, fp8: bool = False) -> None:
        weight = transformer.all_x_embedder["2-1"].weight
        self._device, self._dtype = weight.device, weight.dtype
        self._channels = transformer.in_channels
        self._runner = BlockRunner(load_ops(weight.device), fp8)
        self._pacer = Pacer(weight.device)
        self._modulations = ModulationCache(transformer)
        for block in (*transformer.noise_refiner, *transformer.layers):
            del block.adaLN_modulation
        self._rope = RopeCache(transformer.axes_dims, transformer.rope_theta, weight.device)
        self._image_refiner = take_blocks(transformer.noise_refiner, fp8=fp8)
        self._caption_refiner = take_blocks(transformer.context_refiner, fp8=fp8)
        self._layers = take_blocks(transformer.layers, fp8=fp8)
        self._embed_image = transformer.all_x_embedder["2-1"]
        self._embed_caption = transformer.cap_embedder
        self._image_pad = transformer.x_pad_token.detach()
        self._caption_pad = transformer.cap_pad_token.detach()
        self._final = transformer.all_final_layer["2-1"].linear

    @torch.no_grad()
    def prepare(self, rows: Tensor, reference: Tensor | None) -> FastBranch:
        """See `Denoiser`."""
        caption = self._embed_caption(normalize_rows(rows).to(self._dtype))
        length = pad_length(len(rows))
        caption = torch.cat((caption, self._caption_pad.expand(length - len(rows), -1)))
        rope = self._rope.compute(caption_positions(length))
        with prefer_fast_attention(self._device):
            caption = self._runner.run(caption[None], self._caption_refiner, None, rope)[0]
        patches = None if reference is None else patchify(reference.to(self._dtype)[None])[0]
        return FastBranch(caption, patches)

    @torch.no_grad()
    def predict(
        self, branches: Sequence[Sequence[FastBranch]], latents: Tensor, tau: Tensor
    ) -> list[Tensor]:
        """See `Denoiser`. Images of one kind are evaluated together."""
        groups = defaultdict(list)
        for index, (first, *_) in enumerate(branches):
            groups[len(first.caption), first.reference is not None].append(index)
        out: list[Tensor | None] = [None] * len(branches)
        taus = tau.tolist()
        self._pacer.wait()
        with prefer_fast_attention(self._device):
            for group in groups.values():
                chosen = [branches[index] for index in group]
                # Indexing by a list would wait for the GPU.
                chosen_latents = torch.stack([latents[index] for index in group])
                results = self._evaluate(chosen, chosen_latents, [taus[i] for i in group])
                for index, result in zip(group, results, strict=True):
                    out[index] = result
        return [result for result in out if result is not None]

    def _evaluate(
        self, branches: Sequence[Sequence[FastBranch]], latents: Tensor, taus: Sequence[float]
    ) -> Sequence[Tensor]:
        """Return `predict` of images whose captions have one length, all with a reference or none.

        Args:
            branches: The branches of each image.
            latents: [images, channels, height, width].
            taus: Times of the images.
        """
        height, width = (side // PATCH for side in latents.shape[2:])
        caption_length = len(branches[0][0].caption)
        x = patchify(latents.to(self._dtype))
        if branches[0][0].reference is not None:
            references = [first.reference for first, *_ in branches]
            x = torch.cat((x, torch.stack([r for r in references if r is not None])), dim=1)
        grid = LatentGrid(x.shape[1] // (height * width), height, width)
        tables = self._rope.get(grid, caption_length)
        x = self._refine_image(x, taus, tables.image)
        counts = [len(group) for group in branches]
        owners = [index for index, count in enumerate(counts) for _ in range(count)]
        captions = torch.stack([branch.caption for group in branches for branch in group])
        x = torch.cat((torch.stack([x[owner] for owner in owners]), captions), dim=1)
        modulation = self._modulations.compute([taus[owner] for owner in owners])
        x = self._run_layers(x, modulation, tables.sequence, height * width)
        x = F.layer_norm(x, x.shape[-1:], eps=1e-6) * modulation.final[:, None]
        velocities = unpatchify(self._final(x), height, width).float()
        return velocities.split(counts)

    def _run_layers(self, x: Tensor, modulation: Modulation, rope: Rope, num_kept: int) -> Tensor:
        """Return the first tokens [branches, num_kept, width] after all layers."""
        blocks = modulation.blocks[len(self._image_refiner) :]
        split = max(1, len(self._layers) - LAYERS_AHEAD)
        if split < len(self._layers):
            x = self._runner.run(x, self._layers[:split], blocks[:split], rope)
            self._pacer.mark()
            blocks = blocks[split:]
        return self._runner.run(x, self._layers[-len(blocks) :], blocks, rope, num_kept)

    def _refine_image(self, patches: Tensor, taus: Sequence[float], rope: Rope) -> Tensor:
        """Return refined image tokens [images, padded tokens, width]."""
        x = self._embed_image(patches)
        padding = len(rope.cos) - x.shape[1]
        if padding:
            x = torch.cat((x, self._image_pad.expand(len(x), padding, -1)), dim=1)
        modulation = self._modulations.compute(taus).blocks[: len(self._image_refiner)]
        return self._runner.run(x, self._image_refiner, modulation, rope)


def patchify(latents: Tensor) -> Tensor:
    """Return patches [images, tokens, features], channels last, of [images, channels, h, w]."""
    x = latents.unflatten(3, (-1, PATCH)).unflatten(2, (-1, PATCH))
    return x.permute(0, 2, 4, 3, 5, 1).flatten(3).flatten(1, 2)


def unpatchify(patches: Tensor, height: int, width: int) -> Tensor:
    """Return latents [images, channels, h, w] of patches in `height` rows and `width` columns."""
    x = patches.unflatten(2, (PATCH, PATCH, -1)).unflatten(1, (height, width))
    return x.permute(0, 5, 1, 3, 2, 4).flatten(4).flatten(2, 3)
