"""What is trained to draw: query tokens, connector and diffusion transformer."""

import math
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cookbook.ming_mini_2.image.labels import CLASSES
from sglang_omni.models.json_file import read_json
from sglang_omni.models.ming.image.config import (
    TRANSFORMER,
    ImageHeadConfig,
    read_connector_config,
    read_head_config,
)
from sglang_omni.models.ming.image.connector import Connector

RESIDUAL = ("o_proj.weight", "down_proj.weight")
QUERIES, CONNECTOR_PART, TRANSFORMER_PART, READER = "queries", "connector", "transformer", "reader"


class ContentReader(nn.Module):
    """Tells from condition rows what the picture shows; used only in training.

    The transformer sees the rows beside noise. This gives the query tokens a direct gradient.
    """

    def __init__(self, rows: int, width: int) -> None:
        super().__init__()
        self.read = nn.Linear(rows * width, sum(CLASSES))

    def forward(self, rows: Tensor) -> list[Tensor]:
        """Return logits [N, classes] of every label, of unit rows [N, rows, width]."""
        # As loud as after the transformer's own norm.
        loud = rows * math.sqrt(rows.shape[-1])
        return list(self.read(loud.flatten(1)).float().split(CLASSES, dim=-1))


def content_loss(logits: list[Tensor], labels: Tensor) -> Tensor:
    """Return the mean cross entropy of labels int64 [N, labels]."""
    losses = [F.cross_entropy(one, labels[:, index]) for index, one in enumerate(logits)]
    return torch.stack(losses).mean()


def content_accuracy(logits: list[Tensor], labels: Tensor) -> Tensor:
    """Return the share of scenes of which every label is read."""
    right = [one.argmax(-1) == labels[:, index] for index, one in enumerate(logits)]
    return torch.stack(right).all(0).float().mean()


class DrawingModel(nn.Module):
    """Query tokens, connector and transformer with the checkpoint's tensor names, and a reader."""

    def __init__(self, folder: Path, thinker_width: int) -> None:
        """Build the modules for the image folders in `folder`. Raises `CheckpointError`."""
        from diffusers import ZImageTransformer2DModel

        super().__init__()
        self.head: ImageHeadConfig = read_head_config(folder)
        queries, width = self.head.num_queries, self.head.diffusion_c_input_dim
        self.queries = nn.Parameter(torch.empty(queries, thinker_width))
        self.connector = Connector(self.head, read_connector_config(folder), thinker_width)
        transformer: Any = ZImageTransformer2DModel
        self.transformer = transformer.from_config(read_json(folder / TRANSFORMER / "config.json"))
        self.reader = ContentReader(queries, width)


def new_drawing_model(folder: Path, thinker_width: int, seed: int) -> DrawingModel:
    """Build a model with initial weights that follow from `seed`.

    Blocks of the transformer begin as identities, by gates of zero, and its prediction as zero.
    """
    torch.manual_seed(seed)
    model = DrawingModel(folder, thinker_width)
    layers = len(model.connector.model.layers)
    with torch.no_grad():
        # The thinker's embeddings and features have rows of norm 1.
        model.queries.normal_(std=thinker_width**-0.5)
        for name, parameter in model.named_parameters():
            if name.startswith((CONNECTOR_PART, TRANSFORMER_PART, READER)):
                _start(name, parameter, layers)
    return model


def _start(name: str, parameter: nn.Parameter, layers: int) -> None:
    """Initialise a parameter: norms one, biases zero, matrices scaled by fan-in."""
    if "pad_token" in name:
        parameter.normal_(std=0.02)
    elif name.endswith("bias") or "adaLN_modulation" in name or "all_final_layer" in name:
        parameter.zero_()
    elif parameter.ndim == 1:
        parameter.fill_(1.0)
    else:
        branch = 1 / math.sqrt(2 * layers) if name.endswith(RESIDUAL) else 1.0
        parameter.normal_(std=branch * parameter.shape[1] ** -0.5)


def count_parameters(model: DrawingModel) -> dict[str, int]:
    """Return the parameters of what a checkpoint has of each part."""
    parts: dict[str, list[nn.Parameter]] = {
        "query tokens": [model.queries],
        "connector": list(model.connector.parameters()),
        "transformer": list(model.transformer.parameters()),
    }
    return {name: sum(one.numel() for one in part) for name, part in parts.items()}
