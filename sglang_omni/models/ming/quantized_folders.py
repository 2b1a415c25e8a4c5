"""The folders of a Ming checkpoint with quantized forms: the thinker, and what draws images."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from torch import Tensor

from sglang_omni.models.base import HeadForm, WeightForm
from sglang_omni.models.calibration import CalibrationChat
from sglang_omni.models.checkpoint_files import DIFFUSERS_WEIGHTS_FILE, WEIGHTS_FILE
from sglang_omni.models.ming.image.config import TRANSFORMER, has_image_output
from sglang_omni.models.ming.image.fp8 import convert_tensor
from sglang_omni.models.ming.image.fp8_layout import QUANTIZATION_CONFIG as ROW_FP8
from sglang_omni.models.ming.thinker.fp8 import quantize_head, quantize_weight
from sglang_omni.models.ming.thinker.fp8_layout import (
    HEAD,
    SCALE_SUFFIX,
    build_fp8_config,
    is_quantized,
)
from sglang_omni.models.ming.thinker.int4.calibration import ExpertCalibrator
from sglang_omni.models.ming.thinker.int4.layout import build_int4_config, is_expert_matrix
from sglang_omni.models.ming.thinker.int4.weights import quantize_expert
from sglang_omni.models.quantized_folder import QuantizedFolder


def list_quantized_folders(
    checkpoint: Path, form: WeightForm, head: HeadForm
) -> tuple[QuantizedFolder, ...]:
    """Return the folders that a form changes. What draws images is in FP8 in every form."""
    thinker = _thinker_folder(form, fp8_head=head is HeadForm.FP8)
    if not has_image_output(checkpoint):
        return (thinker,)
    images = QuantizedFolder(Path(TRANSFORMER), DIFFUSERS_WEIGHTS_FILE, ROW_FP8, convert_tensor)
    return thinker, images


def _thinker_folder(form: WeightForm, fp8_head: bool) -> QuantizedFolder:
    if form is WeightForm.FP8:
        convert = partial(convert_to_fp8, fp8_head=fp8_head)
        return QuantizedFolder(Path(), WEIGHTS_FILE, build_fp8_config(fp8_head), convert)
    symmetric = form is WeightForm.INT4
    config = build_int4_config(symmetric, fp8_head)
    convert = partial(convert_to_int4, symmetric=symmetric, fp8_head=fp8_head)
    return QuantizedFolder(Path(), WEIGHTS_FILE, config, convert)


def build_calibrator(
    checkpoint: Path, form: WeightForm, chats: Sequence[CalibrationChat], device: str
) -> ExpertCalibrator:
    """Return what quantizes the experts in four bits by chats. Raises `CheckpointError`."""
    return ExpertCalibrator(checkpoint, chats, form is WeightForm.INT4, device)


def convert_to_fp8(name: str, tensor: Tensor, fp8_head: bool) -> dict[str, Tensor]:
    """Return what an FP8 thinker stores for a tensor: itself, or FP8 values and block scales."""
    if not is_quantized(name, fp8_head):
        return {name: tensor}
    values, scales = quantize_head(tensor) if name == HEAD else quantize_weight(tensor)
    return {name: values, name + SCALE_SUFFIX: scales}


def convert_to_int4(
    name: str, tensor: Tensor, symmetric: bool, fp8_head: bool
) -> dict[str, Tensor]:
    """Return what a four-bit thinker stores for a tensor: experts in four bits, the rest as FP8.

    Raises `CheckpointError` for an expert whose shape has no such form.
    """
    if is_expert_matrix(name):
        return quantize_expert(name, tensor, symmetric=symmetric)
    return convert_to_fp8(name, tensor, fp8_head)
