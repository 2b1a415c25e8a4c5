"""The layers of a model by their names, and a start from a model with fewer of them."""

import re
from collections.abc import Mapping

import torch
from torch import Tensor, nn

LAYER = re.compile(r".*\.(layers|blocks)\.\d+\.")
"""The beginning of the name of a tensor in a layer."""
RESIDUAL = (".o_proj", ".down_proj", ".to_out.0", ".ff.2")
"""How the names of the modules end that add to a residual stream."""


@torch.no_grad()
def start_from(model: nn.Module, stored: Mapping[str, Tensor]) -> None:
    """Load the tensors of a trained model, which may have fewer layers, into a new one.

    A layer that it lacks starts as an identity: what it adds to the residual stream is zero.

    Raises:
        ValueError: A tensor is missing or has another shape.
    """
    layers = {match[0] for match in map(LAYER.match, stored) if match}
    for name, tensor in model.state_dict().items():
        if name in stored and stored[name].shape == tensor.shape:
            tensor.copy_(stored[name])
            continue
        layer = LAYER.match(name)
        if name in stored or layer is None or layer[0] in layers:
            raise ValueError(f"{name} is missing in the trained model, or has another shape")
        if name.rpartition(".")[0].endswith(RESIDUAL):
            tensor.zero_()
