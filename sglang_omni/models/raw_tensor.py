"""Read one tensor of a safetensors file as an array, without torch."""

import json
from pathlib import Path

import numpy as np

from sglang_omni.protocol.errors import CheckpointError

# NumPy has no bfloat16: its bits are read as an integer of the same size.
_DTYPES = {"F32": "<f4", "BF16": "<u2"}
_LENGTH_BYTES = 8


def read_raw_tensor(path: Path, name: str) -> np.ndarray:
    """Return a tensor: float32, or bfloat16 as uint16 bits.

    The file begins with the length of its header, which is JSON with the place of each tensor
    behind it.

    Raises:
        CheckpointError: The tensor or the file is missing, malformed or of another type.
    """
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
            entry = json.loads(file.read(length)).get(name)
            if entry is None:
                raise CheckpointError(f"{path}: tensor {name!r} is missing")
            if entry["dtype"] not in _DTYPES:
                raise CheckpointError(f"{path}: tensor {name!r} must be float32 or bfloat16")
            first, end = entry["data_offsets"]
            file.seek(_LENGTH_BYTES + length + first)
            values = np.frombuffer(file.read(end - first), _DTYPES[entry["dtype"]])
            return values.reshape(entry["shape"])
    except (OSError, ValueError, KeyError) as error:
        raise CheckpointError(f"cannot read tensor {name!r} of {path}: {error}") from error
