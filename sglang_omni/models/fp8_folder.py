"""A folder of a checkpoint that has an FP8 form. Imports no torch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Fp8Folder:
    """How the weights and the configuration of a folder change from bfloat16 to FP8.

    Attributes:
        path: The folder, relative to the checkpoint; `Path()` is the checkpoint itself.
        weights_file: Name of its weights, as of `TensorFolder`.
        quantization_config: What its `config.json` says of the FP8 form, under that key.
        convert: Returns what the FP8 form stores for a tensor of this name: the tensor itself, or
            FP8 values and scales. Raises `CheckpointError` for a shape that has no FP8 form.
    """

    path: Path
    weights_file: str
    quantization_config: Mapping[str, Any]
    convert: "Callable[[str, Tensor], dict[str, Tensor]]"
