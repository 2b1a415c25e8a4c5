"""The folders of a Ming checkpoint that have an FP8 form: the thinker, and what draws images."""

from pathlib import Path

from torch import Tensor

from sglang_omni.models.checkpoint_files import DIFFUSERS_WEIGHTS_FILE, WEIGHTS_FILE
from sglang_omni.models.fp8_folder import Fp8Folder
from sglang_omni.models.ming.image.config import TRANSFORMER, has_image_output
from sglang_omni.models.ming.image.fp8 import convert_tensor
from sglang_omni.models.ming.image.fp8_layout import QUANTIZATION_CONFIG as ROW_FP8
from sglang_omni.models.ming.thinker.fp8 import quantize_weight
from sglang_omni.models.ming.thinker.fp8_layout import QUANTIZATION_CONFIG as BLOCK_FP8
from sglang_omni.models.ming.thinker.fp8_layout import SCALE_SUFFIX, is_quantized


def list_fp8_folders(checkpoint: Path) -> tuple[Fp8Folder, ...]:
    """Return the folders of a checkpoint that have an FP8 form."""
    thinker = Fp8Folder(Path(), WEIGHTS_FILE, BLOCK_FP8, _convert_thinker_tensor)
    if not has_image_output(checkpoint):
        return (thinker,)
    return (thinker, Fp8Folder(Path(TRANSFORMER), DIFFUSERS_WEIGHTS_FILE, ROW_FP8, convert_tensor))


def _convert_thinker_tensor(name: str, tensor: Tensor) -> dict[str, Tensor]:
    if not is_quantized(name):
        return {name: tensor}
    values, scales = quantize_weight(tensor)
    return {name: values, name + SCALE_SUFFIX: scales}
