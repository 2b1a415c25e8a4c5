"""Everything that is trained: the product's modules, and heads for training alone."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from cookbook.ming_mini.thinker.picture_labels import HUES, MAX_BEFORE, NAMES
from cookbook.ming_mini.thinker.scenes import CELLS
from cookbook.ming_mini.thinker.shards import SLOTS
from cookbook.ming_mini.thinker.speech_input import LETTERS
from sglang_omni.models.ming.config import read_encoder_config
from sglang_omni.models.ming.encoders.attention import load_attention
from sglang_omni.models.ming.encoders.audio import AudioEncoder
from sglang_omni.models.ming.encoders.vision_reference import VisionReference
from sglang_omni.models.ming.thinker.hf_config import MingConfig
from sglang_omni.models.ming.thinker.reference import (
    ReferenceLayer,
    ReferenceRouter,
    ReferenceSparseMLP,
    ThinkerReference,
)
from sglang_omni.models.ming.thinker.routing import ROUTERS
from sglang_omni.models.ming.tiny.encoders import compute_sinusoids
from sglang_omni.models.weights import TensorFolder

HEAD_SCALE = 0.3
ROUTED_SCALE = 0.5
"""What routed experts add at first is as loud as the stream itself. Were it soft, the rows of
pictures and clips would pass the sparse layers unchanged, and which router serves them would not
matter."""
RESIDUAL = ("dense.weight", "down_proj.weight", "attn.proj.weight", "linear_fc2.weight")
AUDIO_RESIDUAL = ("attn.out.weight", "mlp.2.weight")


class Heads(nn.Module):
    """Heads that the features of pictures and clips must satisfy, so that the encoders learn fast.

    `marks` predicts what is in each token of a picture, `cells` the position of the token, and
    `turns` how many things are before it. `letters` predicts the letters of a clip from the tower's
    states.
    """

    def __init__(self, hidden: int, state: int, names: int = len(NAMES)) -> None:
        super().__init__()
        self.scale, self.names = math.sqrt(hidden), names
        self.marks = nn.Linear(hidden, SLOTS * names + len(HUES))
        self.cells = nn.Linear(hidden, 2 * CELLS)
        self.turns = nn.Linear(hidden, MAX_BEFORE + 1)
        self.letters = nn.Linear(state, len(LETTERS) + 1)

    def read_marks(self, features: Tensor) -> list[Tensor]:
        """Return logits of features [..., hidden].

        There is one for each slot's name, then the first colour.
        """
        sizes = [self.names] * SLOTS + [len(HUES)]
        return list(self.marks(features * self.scale).split(sizes, dim=-1))

    def read_cells(self, features: Tensor) -> Tensor:
        """Return logits [..., 2, CELLS] of features [..., hidden].

        They are for the row and the column of cells.
        """
        return self.cells(features * self.scale).unflatten(-1, (2, -1))

    def read_turns(self, features: Tensor) -> Tensor:
        """Return logits [..., MAX_BEFORE + 1] of features [..., hidden].

        They say how many things are before.
        """
        return self.turns(features * self.scale)


class TrainableThinker(nn.Module):
    """The thinker, its encoders and the heads of training."""

    def __init__(self, folder: Path, names: int = len(NAMES)) -> None:
        """Build the modules for the configuration in `folder`, with uninitialised weights.

        `names` is the number of things that a picture may show.
        """
        super().__init__()
        config, encoders = MingConfig.from_pretrained(folder), read_encoder_config(folder)
        self.image_token: int = config.llm_config.image_patch_token
        self.frame_token: int = config.llm_config.video_patch_token
        self.thinker = ThinkerReference(config.llm_config)
        self.vision = VisionReference(encoders)
        self.audio = AudioEncoder(encoders, load_attention("sdpa"))
        self.heads = Heads(encoders.hidden_size, encoders.audio.n_state, names)

    def sparse_layers(self) -> list[ReferenceSparseMLP]:
        """Return the layers that have routers."""
        return [
            layer.mlp
            for layer in self.thinker.model.layers
            if isinstance(layer, ReferenceLayer) and isinstance(layer.mlp, ReferenceSparseMLP)
        ]


def new_thinker(folder: Path, seed: int, names: int = len(NAMES)) -> TrainableThinker:
    """Build a model with initial weights that follow from `seed`.

    Pictures show one of `names` things in a slot.
    """
    torch.manual_seed(seed)
    model = TrainableThinker(folder, names)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            _start(name, parameter, _depth(model, name))
        positions = model.audio.audio.positional_embedding
        positions.copy_(compute_sinusoids(*positions.shape))
    for module in model.modules():
        if isinstance(module, ReferenceRouter):
            # Updated from counts, not by a gradient.
            module.expert_bias.requires_grad_(False)
    return model


def _depth(model: TrainableThinker, name: str) -> int:
    stacks = {
        "thinker.": model.thinker.model.layers,
        "vision.": model.vision.vision.blocks,
        "audio.": model.audio.audio.blocks,
    }
    return next((len(stack) for prefix, stack in stacks.items() if name.startswith(prefix)), 1)


def _start(name: str, parameter: nn.Parameter, depth: int) -> None:
    """Initialise a parameter.

    Biases are zero, norms one, matrices scaled by fan-in; residual outputs start small.
    """
    if name.endswith("bias"):
        parameter.zero_()
    elif parameter.ndim == 1:
        parameter.fill_(1.0)
    else:
        parameter.normal_(std=_deviation(name, parameter, depth))


def _deviation(name: str, parameter: nn.Parameter, depth: int) -> float:
    plain = math.prod(parameter.shape[1:]) ** -0.5
    branch = 1 / math.sqrt(2 * depth)
    if ".experts." in name and name.endswith(RESIDUAL):
        return plain * branch * ROUTED_SCALE
    if name.startswith("thinker.") and name.endswith(RESIDUAL):
        # Features have norm 1 by design; embeddings start with it too, and branches in proportion.
        return plain * branch * parameter.shape[0] ** -0.5
    if name.endswith(RESIDUAL) or (name.startswith("audio.") and name.endswith(AUDIO_RESIDUAL)):
        return plain * branch
    return plain * HEAD_SCALE if name.endswith("lm_head.weight") else plain


def checkpoint_tensors(model: TrainableThinker) -> Iterator[tuple[str, Tensor]]:
    """Return every tensor of the released layout with its name."""
    for name, tensor in model.thinker.state_dict().items():
        yield f"model.{name}", tensor
    yield from model.vision.state_dict().items()
    yield from model.audio.state_dict().items()


@torch.no_grad()
def read_packed(model: TrainableThinker, checkpoint: Path) -> None:
    """Load the weights of a folder in the released layout, which has no training heads.

    Raises:
        CheckpointError: A tensor is missing.
    """
    packed = TensorFolder(checkpoint)
    for name, tensor in checkpoint_tensors(model):
        tensor.copy_(packed[name])


def swap_routers(weights: Mapping[str, Tensor], order: tuple[str, ...]) -> dict[str, Tensor]:
    """Return a state with reordered routers: router i takes the tensors of `order[i]`."""
    swapped = dict(weights)
    for name in weights:
        for own, other in zip(ROUTERS, order, strict=True):
            if f".mlp.{own}." in name:
                swapped[name] = weights[name.replace(f".mlp.{own}.", f".mlp.{other}.")].clone()
    return swapped
