"""Quantize weights to four bits in groups of 128 input columns, and dequantize them.

A weight is `scale * (value - zero)`, with values of 0 to 15. Each group of 128 columns of a row has
a scale of its own and, in the asymmetric form, a zero; in the symmetric form every zero is 8.

Layout of the kernels: rows are cut into tiles of 64, so that the tile of one group is contiguous.
An int16 word holds four values of a group: word j has column j in its lowest four bits, then
columns 32 + j, 64 + j and 96 + j. Shifting all words of a tile by the same amount therefore gives
32 adjacent columns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import torch
import torch.nn.functional as F
from torch import Tensor

from sglang_omni.models.ming.thinker.int4.layout import (
    GROUP,
    MAX_VALUE,
    SYMMETRIC_ZERO,
    TILE_ROWS,
    VALUES_PER_WORD,
    WORDS,
    check_int4_shape,
    pad_expert_shape,
    strip_weight,
)

CLIP_RATIOS = (8 / 7, *(1.1 - 0.025 * step for step in range(25)))
"""Parts of a group's range that the search tries, down to 0.5.

With 8 / 7, the seven symmetric steps on the side with fewer steps span the range too.
"""
MIN_SCALE = 1e-12
"""Least magnitude of a scale, for a group of zeros."""
_SHIFTS = tuple(4 * index for index in range(VALUES_PER_WORD))


@dataclass(frozen=True)
class Int4Matrix:
    """A weight [rows, columns] in four bits; with a leading dimension, a stack of them.

    Attributes:
        packed: int16 [rows / 64, columns / 128, 64, 32].
        scale: bfloat16 or float16 [rows / 64, columns / 128, 64].
        zero: int16 of the shape of `scale`; None if every zero is 8.
    """

    packed: Tensor
    scale: Tensor
    zero: Tensor | None = None

    def __getitem__(self, index: int) -> "Int4Matrix":
        """Return one matrix of a stack."""
        zero = None if self.zero is None else self.zero[index]
        return Int4Matrix(self.packed[index], self.scale[index], zero)

    def chunk_rows(self, count: int) -> "list[Int4Matrix]":
        """Return the rows of one matrix as `count` matrices."""
        chunks = {name: tensor.chunk(count) for name, tensor in self.tensors().items()}
        return [
            Int4Matrix(**{name: parts[index].clone() for name, parts in chunks.items()})
            for index in range(count)
        ]

    def to(self, device: torch.device) -> "Int4Matrix":
        """Return the matrix on a device."""
        return Int4Matrix(**{name: part.to(device) for name, part in self.tensors().items()})

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors that are there, by attribute."""
        pairs = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: tensor for name, tensor in pairs if tensor is not None}


@dataclass(frozen=True)
class Int4Error:
    """How far a quantized weight is from its original.

    Attributes:
        relative: Norm of the difference, relative to that of the original.
        max_abs: Largest difference of one weight.
    """

    relative: float
    max_abs: float


def stack_int4(matrices: Sequence[Int4Matrix]) -> Int4Matrix:
    """Stack matrices of the same shape and form, as the experts of a layer are stored."""
    names = matrices[0].tensors()
    return Int4Matrix(
        **{name: torch.stack([m.tensors()[name] for m in matrices]) for name in names}
    )


def quantize_int4(
    weight: Tensor, symmetric: bool = True, ratios: Sequence[float] = CLIP_RATIOS
) -> Int4Matrix:
    """Quantize a weight [rows, columns] with the scales of `search_scales`, each group by itself.

    Raises:
        CheckpointError: The sizes are not multiples of the tile and the group.
    """
    check_int4_shape(tuple(weight.shape))
    groups = weight.float().unflatten(1, (-1, GROUP))
    scale, zero = search_scales(groups, symmetric, ratios)
    values = round_to_values(groups, scale, zero).flatten(1)
    return build_int4_matrix(values, scale.squeeze(-1), zero.squeeze(-1), symmetric)


def search_scales(
    groups: Tensor,
    symmetric: bool,
    ratios: Sequence[float] = CLIP_RATIOS,
    importance: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return scale, in bfloat16's numbers, and zero [..., 1] of groups [..., 128].

    For each group, `ratios` of its range are tried, and the one with the least squared error is
    kept; `importance` weights the errors of its columns. The symmetric scale has a sign: it maps
    the number of largest magnitude to value 0, of which there are eight steps to the zero, and
    seven on the other side.
    """
    fit = _fit_symmetric if symmetric else _fit_asymmetric
    best_scale, best_zero = fit(groups, ratios[0])
    best_error = _squared_error(groups, best_scale, best_zero, importance)
    for ratio in ratios[1:]:
        scale, zero = fit(groups, ratio)
        error = _squared_error(groups, scale, zero, importance)
        is_better = error < best_error
        best_error = torch.where(is_better, error, best_error)
        best_scale = torch.where(is_better, scale, best_scale)
        best_zero = torch.where(is_better, zero, best_zero)
    return best_scale, best_zero


def build_int4_matrix(values: Tensor, scale: Tensor, zero: Tensor, symmetric: bool) -> Int4Matrix:
    """Return the stored form of values [rows, columns], and scales and zeros [rows, groups]."""
    return Int4Matrix(
        pack_values(values.to(torch.uint8)),
        tile_groups(scale.bfloat16()),
        None if symmetric else tile_groups(zero.to(torch.int16)),
    )


def quantize_expert(name: str, weight: Tensor, symmetric: bool) -> dict[str, Tensor]:
    """Return the tensors that a checkpoint stores for an expert's weight of this name.

    Raises:
        CheckpointError: The hidden size is not a multiple of a group.
    """
    return name_int4_tensors(name, quantize_int4(pad_expert(name, weight), symmetric))


def pad_expert(name: str, weight: Tensor) -> Tensor:
    """Return an expert's weight of this name with zeros up to its stored sizes."""
    rows, columns = pad_expert_shape(name, tuple(weight.shape))
    return F.pad(weight, (0, columns - weight.shape[1], 0, rows - weight.shape[0]))


def name_int4_tensors(name: str, matrix: Int4Matrix) -> dict[str, Tensor]:
    """Return the tensors of a matrix, by the names that stand for the weight `name`."""
    return {strip_weight(name) + part: tensor for part, tensor in matrix.tensors().items()}


def read_int4_matrix(name: str, stored: Mapping[str, Tensor]) -> Int4Matrix:
    """Return the matrix that stands for the weight `name` among stored tensors."""
    stem = strip_weight(name)
    names = (field.name for field in fields(Int4Matrix))
    return Int4Matrix(**{part: stored[stem + part] for part in names if stem + part in stored})


def dequantize_int4(matrix: Int4Matrix) -> Tensor:
    """Return the float32 weight [rows, columns] of one matrix."""
    values = unpack_values(matrix.packed).float().unflatten(1, (-1, GROUP))
    zero = SYMMETRIC_ZERO if matrix.zero is None else untile_groups(matrix.zero).float()[..., None]
    return ((values - zero) * untile_groups(matrix.scale).float()[..., None]).flatten(1)


def multiply_int4(x: Tensor, matrix: Int4Matrix) -> Tensor:
    """Multiply rows x [tokens, columns] by the transposed weight; return x's dtype.

    This is the plain form of the kernels: the weight is dequantized in float32, and the sum is in
    float32 too.
    """
    return (x.float() @ dequantize_int4(matrix).T).to(x.dtype)


def measure_int4_error(weight: Tensor, matrix: Int4Matrix) -> Int4Error:
    """Compare a quantized weight with its original [rows, columns]."""
    original = weight.float()
    difference = dequantize_int4(matrix) - original
    norm = original.norm().clamp(min=MIN_SCALE)
    return Int4Error(float(difference.norm() / norm), float(difference.abs().max()))


def pack_values(values: Tensor) -> Tensor:
    """Pack uint8 values of 0 to 15 [rows, columns] into int16 words of the kernels' layout."""
    check_int4_shape(tuple(values.shape))
    rows, columns = values.shape
    shape = rows // TILE_ROWS, TILE_ROWS, columns // GROUP, VALUES_PER_WORD, WORDS
    parts = values.view(shape).to(torch.int32)
    words = torch.zeros_like(parts[..., 0, :])
    for index, shift in enumerate(_SHIFTS):
        words |= parts[..., index, :] << shift
    return words.permute(0, 2, 1, 3).to(torch.int16).contiguous()


def unpack_values(packed: Tensor) -> Tensor:
    """Return the uint8 values [rows, columns] of packed words."""
    words = packed.permute(0, 2, 1, 3).to(torch.int32)
    parts = torch.stack([words >> shift & MAX_VALUE for shift in _SHIFTS], dim=-2)
    tiles, rows, groups = parts.shape[:3]
    return parts.to(torch.uint8).reshape(tiles * rows, groups * GROUP)


def tile_groups(per_group: Tensor) -> Tensor:
    """Order numbers [rows, groups] as the words are: [rows / 64, groups, 64]."""
    return per_group.unflatten(0, (-1, TILE_ROWS)).transpose(1, 2).contiguous()


def untile_groups(tiled: Tensor) -> Tensor:
    """Undo `tile_groups`: return [rows, groups]."""
    return tiled.transpose(1, 2).flatten(0, 1)


def round_to_values(weights: Tensor, scale: Tensor, zero: Tensor) -> Tensor:
    """Return the nearest values, 0 to 15, in the dtype of the weights."""
    return (weights / scale).add_(zero).round_().clamp_(0, MAX_VALUE)


def _fit_symmetric(groups: Tensor, ratio: float) -> tuple[Tensor, Tensor]:
    """Return scale and zero [rows, groups, 1] that map a part of each group's range to values."""
    extreme = groups.gather(-1, groups.abs().argmax(-1, keepdim=True))
    scale = _as_stored(extreme * (ratio / -SYMMETRIC_ZERO))
    return scale, torch.full_like(scale, SYMMETRIC_ZERO)


def _fit_asymmetric(groups: Tensor, ratio: float) -> tuple[Tensor, Tensor]:
    """Return scale and zero [rows, groups, 1] that map a part of each group's range to values."""
    # Zero is in the range, so that it has a value of its own.
    low, high = groups.aminmax(dim=-1, keepdim=True)
    low, high = low.clamp(max=0.0) * ratio, high.clamp(min=0.0) * ratio
    scale = _as_stored((high - low) / MAX_VALUE)
    return scale, (-low / scale).round().clamp_(0, MAX_VALUE)


def _as_stored(scale: Tensor) -> Tensor:
    """Round scales to bfloat16, so that values are chosen for the scale that is stored."""
    rounded = scale.bfloat16().float()
    return torch.where(rounded.abs() < MIN_SCALE, MIN_SCALE, rounded)


def _squared_error(
    groups: Tensor, scale: Tensor, zero: Tensor, importance: Tensor | None
) -> Tensor:
    restored = round_to_values(groups, scale, zero).sub_(zero).mul_(scale)
    squares = restored.sub_(groups).square_()
    return (squares if importance is None else squares * importance).sum(-1, keepdim=True)
