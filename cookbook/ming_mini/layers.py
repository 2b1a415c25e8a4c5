"""The layers of a model by their names, and a start from a smaller model."""

import re
from collections.abc import Mapping

import torch
from torch import Tensor, nn

LAYER = re.compile(r".*\.(layers|blocks)\.\d+\.")
"""The beginning of the name of a tensor in a layer."""
RESIDUAL = (".o_proj", ".down_proj", ".to_out.0", ".ff.2")
"""How the names of the modules end that add to a residual stream."""
UNITS = (".gate_proj.weight", ".up_proj.weight", ".down_proj.weight")
"""How the names of the matrices of a gated feed-forward part end; the last one has its outputs."""


@torch.no_grad()
def start_from(model: nn.Module, stored: Mapping[str, Tensor]) -> None:
    """Load the tensors of a trained model into a new one, which may have more and wider layers.

    A layer that the trained one lacks starts as an identity: what it adds to the residual stream is
    zero. So is what the further units of a wider feed-forward part add.

    Raises:
        ValueError: A tensor is missing or has a shape that is not explained by that.
    """
    layers = {match[0] for match in map(LAYER.match, stored) if match}
    for name, tensor in model.state_dict().items():
        if name in stored and stored[name].shape == tensor.shape:
            tensor.copy_(stored[name])
            continue
        layer = LAYER.match(name)
        wider = name in stored and _is_widened(name, stored[name], tensor)
        if layer is None or (layer[0] in layers and not wider):
            raise ValueError(f"{name} is missing in the trained model, or has another shape")
        if name.rpartition(".")[0].endswith(RESIDUAL):
            tensor.zero_()
        if wider:
            rows, columns = stored[name].shape
            tensor[:rows, :columns] = stored[name]


def _is_widened(name: str, stored: Tensor, tensor: Tensor) -> bool:
    """Return whether a matrix of a gated feed-forward part has more units than it had."""
    if not name.endswith(UNITS) or stored.ndim != tensor.ndim:
        return False
    units = 1 if name.endswith(UNITS[-1]) else 0
    return stored.shape[1 - units] == tensor.shape[1 - units] and (
        stored.shape[units] < tensor.shape[units]
    )
