"""The diffusion transformer in FP8: convert its tensors, and build the module that takes them."""

from typing import Any

import torch
from torch import Tensor, nn

from sglang_omni.models.checkpoint_files import QUANTIZATION_KEY
from sglang_omni.models.ming.image.fast.rows import FP8, quantize_rows
from sglang_omni.models.ming.image.fp8_layout import SCALE_SUFFIX, is_image_matrix
from sglang_omni.models.weights import use_device_and_dtype


def convert_tensor(name: str, tensor: Tensor) -> dict[str, Tensor]:
    """Return what an FP8 checkpoint stores for a tensor of the transformer.

    A matrix [rows, columns] has values of that shape, and scales [rows, 1].
    """
    if not is_image_matrix(name):
        return {name: tensor}
    rows = quantize_rows(tensor)
    return {name: rows.data, name + SCALE_SUFFIX: rows.scales}


def build_fp8_transformer(
    cls: Any, config: dict[str, Any], device: torch.device, dtype: torch.dtype
) -> Any:
    """Build diffusers' class with matrices in FP8, which have a buffer `weight_scale` beside them.

    The weights are not initialised, and the module cannot be called: `FastDenoiser` takes them.

    Args:
        cls: The class of diffusers.
        config: Its configuration, with the quantization.
        device: Where the weights are.
        dtype: Of the weights that are not in FP8.
    """
    plain = {key: value for key, value in config.items() if key != QUANTIZATION_KEY}
    # On the meta device, so that the matrices never exist in `dtype`.
    with use_device_and_dtype(torch.device("meta"), dtype):
        module = cls.from_config(plain).requires_grad_(False).eval()
        for name, part in module.named_modules():
            if is_image_matrix(f"{name}.weight"):
                _make_fp8(part)
    return module.to_empty(device=device)


def _make_fp8(linear: nn.Linear) -> None:
    rows, columns = linear.weight.shape
    values = torch.empty(rows, columns, dtype=FP8)
    linear.weight = nn.Parameter(values, requires_grad=False)
    linear.register_buffer(f"weight{SCALE_SUFFIX}", torch.empty(rows, 1, dtype=torch.float32))
