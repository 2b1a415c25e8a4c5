"""Write an expert's matrix in published four-bit layouts, word by word, by their rules."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32
from torch import Tensor

GROUP = 128
# AutoAWQ packs columns 0, 2, 4, 6, 1, 3, 5, 7 of eight, from the lowest four bits up.
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)


@dataclass(frozen=True)
class Quantized:
    """Values of 0 to 15 [rows, columns], and scales and zeros [rows, groups]."""

    values: Tensor
    scale: Tensor
    zero: Tensor

    def restore(self) -> Tensor:
        """The float32 weight."""
        zero, scale = (part.repeat_interleave(GROUP, 1) for part in (self.zero, self.scale.float()))
        return (self.values.float() - zero.float()) * scale


def draw_quantized(
    rows: int, columns: int, dtype: torch.dtype, symmetric: bool, seed: int = 0
) -> Quantized:
    generator = torch.Generator().manual_seed(seed)
    groups = columns // GROUP
    values = torch.randint(0, 16, (rows, columns), generator=generator)
    scale = (torch.rand(rows, groups, generator=generator) * 0.01 + 1e-3).to(dtype)
    zero = torch.randint(1, 16, (rows, groups), generator=generator)
    return Quantized(values, scale, torch.full_like(zero, 8) if symmetric else zero)


def pack(columns: list[Tensor]) -> Tensor:
    """int32 words of eight columns each, the first in the lowest four bits."""
    word = sum(column.long() << 4 * place for place, column in enumerate(columns))
    assert isinstance(word, Tensor)
    return torch.where(word >= 2**31, word - 2**32, word).int()


def pack_rows(numbers: Tensor, order: tuple[int, ...] = tuple(range(8))) -> Tensor:
    """Pack [n, 8 * m] into int32 [n, m], with the columns of a word in this order."""
    words = [
        pack([numbers[:, start + column] for column in order])
        for start in range(0, numbers.shape[1], 8)
    ]
    return torch.stack(words, dim=1).contiguous()


def write_compressed(matrix: Quantized) -> dict[str, Tensor]:
    """As compressed-tensors writes it, with its own function, which takes signed numbers."""
    values, zero = ((part - 8).to(torch.int8) for part in (matrix.values, matrix.zero))
    tensors = {
        "weight_packed": pack_to_int32(values, 4),
        "weight_scale": matrix.scale.contiguous(),
        "weight_shape": torch.tensor(values.shape),
    }
    if zero.any():
        tensors["weight_zero_point"] = pack_to_int32(zero, 4, packed_dim=0).contiguous()
    return tensors


def write_awq(matrix: Quantized) -> dict[str, Tensor]:
    return {
        "qweight": pack_rows(matrix.values.T, AWQ_ORDER),
        "qzeros": pack_rows(matrix.zero.T, AWQ_ORDER),
        "scales": matrix.scale.T.contiguous(),
    }


def write_gptq(matrix: Quantized, offset: int = 1) -> dict[str, Tensor]:
    return {
        "qweight": pack_rows(matrix.values).T.contiguous(),
        "qzeros": pack_rows(matrix.zero.T - offset),
        "scales": matrix.scale.T.contiguous(),
        "g_idx": torch.arange(matrix.values.shape[1]).int() // GROUP,
    }


def compressed_config(**weights: Any) -> dict[str, Any]:
    group = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128}
    groups = {"group_0": {"targets": ["Linear"], "weights": {**group, **weights}}}
    return {
        "quant_method": "compressed-tensors",
        "format": "pack-quantized",
        "config_groups": groups,
    }


def awq_config(**changed: Any) -> dict[str, Any]:
    config = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}
    return {**config, "version": "gemm", **changed}


def gptq_config(**changed: Any) -> dict[str, Any]:
    config = {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False, "sym": False}
    return {**config, **changed}


@dataclass(frozen=True)
class Published:
    """One variant of a layout: its configuration, its writer, and what it can hold."""

    config: dict[str, Any]
    write: Callable[[Quantized], dict[str, Tensor]]
    dtype: torch.dtype
    symmetric: bool


PUBLISHED = {
    "compressed-tensors": Published(
        compressed_config(symmetric=True), write_compressed, torch.bfloat16, True
    ),
    "compressed-tensors-asymmetric": Published(
        compressed_config(symmetric=False), write_compressed, torch.bfloat16, False
    ),
    "awq": Published(awq_config(), write_awq, torch.float16, False),
    "gptq": Published(gptq_config(), write_gptq, torch.float16, False),
    "gptq-symmetric": Published(gptq_config(sym=True), write_gptq, torch.float16, True),
    "gptq_v2": Published(
        gptq_config(checkpoint_format="gptq_v2"),
        lambda matrix: write_gptq(matrix, 0),
        torch.float16,
        False,
    ),
}
