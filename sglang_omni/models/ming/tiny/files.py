"""Write the files of the tiny checkpoint in the released formats."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

from sglang_omni.models.ming.encoders.tensors import POSITIONAL_EMBEDDING
from sglang_omni.models.ming.speech.talker import ROTARY_BUFFERS
from sglang_omni.models.ming.tiny.speech import ISTFT_WINDOW

# The released files store these tables in float32, everything else in bfloat16.
FLOAT32 = (POSITIONAL_EMBEDDING, ISTFT_WINDOW, *ROTARY_BUFFERS)


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> int:
    """Write a file of tensors in the released dtypes; return their size in bytes."""
    stored = {
        name: tensor.to(torch.float32 if name in FLOAT32 else torch.bfloat16).contiguous()
        for name, tensor in tensors.items()
    }
    # Not `save_file`, which makes the file readable only by its owner.
    path.write_bytes(save(stored, metadata={"format": "pt"}))
    return sum(tensor.nbytes for tensor in stored.values())


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON in UTF-8, with a line break at the end."""
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
