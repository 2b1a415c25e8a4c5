"""A folder of a checkpoint that has a quantized form. Imports no torch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class QuantizedFolder:
    """How the weights and the configuration of a folder change from bfloat16 to a quantized form.

    Attributes:
        path: The folder, relative to the checkpoint; `Path()` is the checkpoint itself.
        weights_file: Name of its weights, as of `TensorFolder`.
        quantization_config: What its `config.json` says of the form, under that key.
        convert: Returns what the form stores for a tensor of this name: the tensor itself, or its
            quantized values with their scales. Raises `CheckpointError` for a shape that has no
            such form.
    """

    path: Path
    weights_file: str
    quantization_config: Mapping[str, Any]
    convert: "Callable[[str, Tensor], dict[str, Tensor]]"
