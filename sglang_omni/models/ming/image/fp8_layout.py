"""FP8 layout of the diffusion transformer: which tensors are quantized, and their names. No torch.

The matrices of attention and feed-forward parts are float8_e4m3fn with one float32 scale for each
row, of shape [rows, 1], as the fast evaluation multiplies. Embeddings, norms, modulations and the
last layer keep their dtype.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sglang_omni.models.checkpoint_files import QUANTIZATION_KEY
from sglang_omni.models.json_file import read_json
from sglang_omni.models.ming.image.config import TRANSFORMER
from sglang_omni.protocol.errors import CheckpointError

SCALE_SUFFIX = "_scale"
QUANTIZATION_CONFIG = {
    "quant_method": "fp8",
    "fmt": "e4m3",
    "activation_scheme": "dynamic",
    "weight_scale": "row",
}

_STACKS = ("noise_refiner.", "context_refiner.", "layers.")
_MATRICES = (
    ".attention.to_q.weight",
    ".attention.to_k.weight",
    ".attention.to_v.weight",
    ".attention.to_out.0.weight",
    ".feed_forward.w1.weight",
    ".feed_forward.w2.weight",
    ".feed_forward.w3.weight",
)


def is_image_matrix(name: str) -> bool:
    """Whether FP8 checkpoints store the transformer's tensor `name` in FP8."""
    return name.startswith(_STACKS) and name.endswith(_MATRICES)


def is_row_fp8(config: Mapping[str, Any]) -> bool:
    """Whether a transformer's `config.json` selects this layout; False without quantization.

    Raises:
        CheckpointError: The transformer has another quantization.
    """
    found = config.get(QUANTIZATION_KEY)
    if found is None:
        return False
    if found != QUANTIZATION_CONFIG:
        raise CheckpointError(
            f"the image transformer is quantized as {found}; only FP8 with a scale for each row is "
            "supported; `sgl-omni quantize` creates it"
        )
    return True


def has_fp8_transformer(checkpoint: Path) -> bool:
    """Whether the transformer of a checkpoint is stored in FP8. Raises `CheckpointError`."""
    return is_row_fp8(read_json(checkpoint / TRANSFORMER / "config.json"))
