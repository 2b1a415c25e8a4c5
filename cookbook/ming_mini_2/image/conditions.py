"""From prompts to condition rows: the frozen thinker, many prompts at once."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from cookbook.ming_mini.compilation import Runner, run_eager
from cookbook.ming_mini.thinker.encoders import encode_images
from cookbook.ming_mini.thinker.forward import Rows, run_thinker
from cookbook.ming_mini_2.image.model import DrawingModel
from sglang_omni.models.ming.config import read_encoder_config
from sglang_omni.models.ming.encoders.vision_reference import VisionReference
from sglang_omni.models.ming.thinker.hf_config import MingConfig
from sglang_omni.models.ming.thinker.reference import ThinkerReference, load_reference
from sglang_omni.models.weights import TensorFolder, load_strict


@dataclass(frozen=True)
class Prompts:
    """N prompts of L tokens on a device, padded at their ends.

    `ids` int64 [N, L], `positions` int64 [N, 3, L] and `routes` int64 [N, L] are the thinker's.
    `queries` int64 [N, queries] are the places of the query tokens. `features` [N, tokens, hidden]
    of pictures to edit go to the places `pictures` int64 [N, tokens], which may be none.
    """

    ids: Tensor
    positions: Tensor
    routes: Tensor
    queries: Tensor
    pictures: Tensor
    features: Tensor


class FrozenThinker:
    """The thinker and vision encoder of a checkpoint, whose weights stay as they are."""

    def __init__(self, checkpoint: Path, device: torch.device, run: Runner = run_eager) -> None:
        """Load both in float32. Raises `CheckpointError`."""
        config, encoders = MingConfig.from_pretrained(checkpoint), read_encoder_config(checkpoint)
        self.thinker: ThinkerReference = load_reference(checkpoint, config.llm_config).to(device)
        self.thinker.requires_grad_(False)
        self.vision = VisionReference(encoders)
        tensors = TensorFolder(checkpoint)
        own = self.vision.state_dict()
        load_strict(self.vision, {name: tensors[name] for name in own})
        self.vision = self.vision.to(device).eval().requires_grad_(False)
        self.width: int = encoders.hidden_size
        self._run = run

    @torch.no_grad()
    def encode(self, pictures: Tensor) -> Tensor:
        """Return features [N, tokens, hidden] of pictures [N, height, width, 3] of 0 to 255."""
        return encode_images(self.vision, pictures, self._run)

    def think(self, prompts: Prompts, query_rows: Tensor) -> Tensor:
        """Return the final states [N, queries, hidden] at the query tokens.

        `query_rows` [queries, hidden] are their embeddings, to which gradients flow.
        """
        count, length = prompts.ids.shape
        x = self.thinker.model.word_embeddings(prompts.ids)
        x = _put(x, prompts.pictures, prompts.features)
        x = _put(x, prompts.queries, query_rows.expand(count, -1, -1))
        rows = Rows(
            prompts.positions.transpose(0, 1).flatten(1),
            prompts.routes.flatten(),
            torch.ones(count * length, dtype=torch.bool, device=x.device),
            ((count, length),),
        )
        states, _ = run_thinker(self.thinker, x.flatten(0, 1), rows, self._run)
        places = prompts.queries[..., None].expand(-1, -1, x.shape[-1])
        return states.unflatten(0, (count, length)).gather(1, places)


def _put(x: Tensor, places: Tensor, values: Tensor) -> Tensor:
    """Return x [N, L, hidden] with values [N, n, hidden] at places [N, n]."""
    if not places.shape[1]:
        return x
    index = places[..., None].expand(-1, -1, x.shape[-1])
    return x.scatter(1, index, values.to(x.dtype))


def compute_rows(model: DrawingModel, thinker: FrozenThinker, prompts: Prompts) -> Tensor:
    """Return condition rows, float32 [N, queries, width] of norm 1."""
    rows: Tensor = model.connector(thinker.think(prompts, model.queries))
    return rows
