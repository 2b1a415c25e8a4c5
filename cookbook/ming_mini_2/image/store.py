"""All examples of a kind on the training device, with what never changes computed once.

That is the latents of the pictures, and the vision encoder's features of those to edit.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from cookbook.ming_mini_2.image.conditions import FrozenThinker, Prompts
from cookbook.ming_mini_2.image.drawing import PictureArrays, PictureDrawer
from cookbook.ming_mini_2.image.examples import ExampleArrays, Kind
from cookbook.ming_mini_2.image.prompts import PromptBuilder
from cookbook.ming_mini_2.image.scenes import Size
from cookbook.ming_mini_2.image.vae import LatentCodec

CHUNK = 256
"""Pictures that are encoded at a time."""


@dataclass(frozen=True)
class PictureBatch:
    """Latents [N, 16, h, w], float32, of the pictures to draw, and of those to edit."""

    target: Tensor
    reference: Tensor | None


@dataclass(frozen=True)
class PromptBatch:
    """N examples: prompts, and labels.

    `labels` int64 [N, labels] say what the pictures to draw show.
    """

    prompts: Prompts
    labels: Tensor


@dataclass(frozen=True)
class ExampleStore:
    """The examples of one kind.

    The tensors are those of `PromptLayout`, `PromptBatch` and `PictureBatch`.
    """

    ids: Tensor
    positions: Tensor
    routes: Tensor
    queries: Tensor
    pictures: Tensor
    features: Tensor
    target: Tensor
    reference: Tensor | None
    labels: Tensor

    def __len__(self) -> int:
        return len(self.ids)

    def select_pictures(self, index: Tensor) -> PictureBatch:
        """Return the pictures of the examples with the numbers `index` int64 [N]."""
        target = self.target.index_select(0, index).float()
        if self.reference is None:
            return PictureBatch(target, None)
        return PictureBatch(target, self.reference.index_select(0, index).float())

    def select_prompts(self, index: Tensor) -> PromptBatch:
        """Return prompts and labels of the examples with the numbers `index` int64 [N]."""

        def take(tensor: Tensor) -> Tensor:
            return tensor.index_select(0, index)

        prompts = Prompts(
            take(self.ids).long(),
            take(self.positions).long(),
            take(self.routes).long(),
            take(self.queries).long(),
            take(self.pictures).long(),
            take(self.features).float(),
        )
        return PromptBatch(prompts, take(self.labels).long())


@dataclass(frozen=True)
class StoreBuilder:
    """What examples are prepared with."""

    thinker: FrozenThinker
    codec: LatentCodec
    drawer: PictureDrawer
    prompts: PromptBuilder
    device: torch.device

    def build(self, kind: Kind, arrays: ExampleArrays) -> ExampleStore:
        """Prepare the examples of a kind."""
        task, size = kind
        layout = self.prompts.lay_out(arrays.ids, size if task == "edit" else None)
        features, reference = self._prepare_sources(arrays.sources, size, len(arrays))
        targets, _ = self._encode(arrays.targets, size, see=False)
        return ExampleStore(
            self._move(arrays.ids),
            self._move(layout.positions),
            self._move(layout.routes),
            self._move(layout.queries),
            self._move(layout.pictures),
            features,
            targets,
            reference,
            self._move(arrays.labels),
        )

    def _prepare_sources(
        self, sources: PictureArrays | None, size: Size, count: int
    ) -> tuple[Tensor, Tensor | None]:
        """Return features [N, tokens, hidden] and latents of the pictures to edit."""
        if sources is None:
            return torch.zeros(count, 0, self.thinker.width, device=self.device), None
        latents, features = self._encode(sources, size, see=True)
        return features, latents

    def _encode(self, pictures: PictureArrays, size: Size, *, see: bool) -> tuple[Tensor, Tensor]:
        """Return latents in bfloat16, and with `see` features; without, an empty tensor."""
        latents, features = [], []
        for start in range(0, len(pictures), CHUNK):
            part = slice(start, start + CHUNK)
            placed, colours = self._move(pictures.placed[part]), self._move(pictures.colours[part])
            drawn = self.drawer.draw(placed, colours, size)
            latents.append(self.codec.encode(drawn).bfloat16())
            if see:
                features.append(self.thinker.encode(drawn).bfloat16())
        return torch.cat(latents), torch.cat(features) if see else torch.empty(0)

    def _move(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(array).to(self.device)
