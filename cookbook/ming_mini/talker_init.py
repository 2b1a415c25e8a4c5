"""The talker's initial weights."""

import math
import re
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from sglang_omni.models.ming.config import TalkerConfig
from sglang_omni.models.ming.speech.talker import Talker

EMBEDDING_STD = 0.5
# Layers that add to a residual stream start small.
RESIDUAL = (".o_proj", ".down_proj", ".to_out.0", ".ff.2")
_LAYER = re.compile(r".*\.(layers|blocks)\.\d+\.")


def new_talker(config: TalkerConfig, seed: int) -> Talker:
    """Build a talker with initial weights that follow from `seed`."""
    torch.manual_seed(seed)
    talker = Talker(config)
    for name, module in talker.named_modules():
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=EMBEDDING_STD)
        elif isinstance(module, nn.Linear):
            scale = 0.5 if name.endswith(RESIDUAL) else 1.0
            nn.init.normal_(module.weight, std=scale / math.sqrt(module.in_features))
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    with torch.no_grad():
        talker.cfm.model.final_layer.linear.weight *= 0.1
        talker.stop_head.weight *= 0.1
    return talker


@torch.no_grad()
def start_from(talker: Talker, stored: Mapping[str, Tensor]) -> None:
    """Load the tensors of a trained talker, which may have fewer layers, into a new one.

    A layer that it lacks starts as an identity: what it adds to the residual stream is zero.

    Raises:
        ValueError: A tensor is missing or has another shape.
    """
    layers = {match[0] for match in map(_LAYER.match, stored) if match}
    for name, tensor in talker.state_dict().items():
        if name in stored and stored[name].shape == tensor.shape:
            tensor.copy_(stored[name])
            continue
        layer = _LAYER.match(name)
        if name in stored or layer is None or layer[0] in layers:
            raise ValueError(f"{name} is missing in the trained talker, or has another shape")
        if name.rpartition(".")[0].endswith(RESIDUAL):
            tensor.zero_()


def hidden_matrices(talker: Talker) -> list[nn.Parameter]:
    """Return the matrices inside the layers; embeddings and what makes the outputs are none."""
    return [
        weight
        for name, weight in talker.named_parameters()
        if weight.ndim == 2 and _LAYER.match(name)
    ]
