"""Quantize a weight to four bits by what its inputs are: rounding errors are compensated.

The method is GPTQ (Frantar et al., 2022): columns are rounded one after the other, and those that
follow are changed so that the output differs least, as the inputs' second moment tells. The scale
of a group is searched as it is reached, with errors weighted by the size of the inputs.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from sglang_omni.models.ming.thinker.int4.layout import GROUP, check_int4_shape
from sglang_omni.models.ming.thinker.int4.weights import (
    CLIP_RATIOS,
    Int4Matrix,
    build_int4_matrix,
    round_to_values,
    search_scales,
)

MIN_SQUARE = 1e-12
"""Least mean of the inputs' squares, for an expert whose inputs are zeros."""
MOMENT_ROWS = 8192
"""Inputs that are multiplied at once."""


@dataclass(frozen=True)
class InputMoment:
    """The inputs of a matrix, as far as the errors of its outputs depend on them.

    Attributes:
        mean: Mean of the outer products of the inputs with themselves, float32 [columns, columns].
        count: Number of inputs.
    """

    mean: Tensor
    count: int

    def add_prior(self) -> Tensor:
        """Return the mean with as many inputs of independent columns as there are columns.

        Few inputs do not show how columns depend on each other, and other prompts, such as those
        with pictures, have other inputs; a weight that fits the given ones alone is worse for them.
        With what is added, the moment always has an inverse.
        """
        columns = len(self.mean)
        square = self.mean.diagonal().mean().clamp(min=MIN_SQUARE)
        independent = torch.eye(columns, device=self.mean.device) * square
        return torch.lerp(independent, self.mean, self.count / (self.count + columns))


def measure_moment(inputs: Tensor) -> InputMoment:
    """Return the moment of inputs [tokens, columns], of which there is at least one."""
    total = torch.zeros(inputs.shape[1], inputs.shape[1], device=inputs.device)
    for rows in inputs.split(MOMENT_ROWS):
        total.addmm_(rows.float().T, rows.float())
    return InputMoment(total / len(inputs), len(inputs))


def quantize_compensated(weight: Tensor, moment: InputMoment, symmetric: bool) -> Int4Matrix:
    """Quantize a weight [rows, columns] whose inputs have this moment.

    Columns of the weight beyond those of the moment have inputs of zero.

    Raises:
        CheckpointError: The sizes are not multiples of the tile and the group.
    """
    check_int4_shape(tuple(weight.shape))
    mean = _pad_diagonal(moment.add_prior(), weight.shape[1])
    importance, factor = mean.diagonal(), factor_inverse(mean)
    rest = weight.to(torch.float32, copy=True)
    values, scales, zeros = [], [], []
    for start in range(0, weight.shape[1], GROUP):
        end = start + GROUP
        scale, zero = search_scales(
            rest[:, start:end], symmetric, CLIP_RATIOS, importance[start:end]
        )
        rounded, errors = _round_group(
            rest[:, start:end], factor[start:end, start:end], scale, zero
        )
        rest[:, end:] -= errors @ factor[start:end, end:]
        values.append(rounded)
        scales.append(scale)
        zeros.append(zero)
    return build_int4_matrix(
        torch.cat(values, dim=1), torch.cat(scales, dim=1), torch.cat(zeros, dim=1), symmetric
    )


def _pad_diagonal(mean: Tensor, columns: int) -> Tensor:
    """Return a moment of so many columns, of which the new ones depend on no other."""
    blocks = mean, mean.new_ones(columns - len(mean)).diag()
    return torch.block_diag(*blocks) if columns > len(mean) else mean


def factor_inverse(mean: Tensor) -> Tensor:
    """Return the upper Cholesky factor of the inverse of a moment.

    Row j, divided by its diagonal, says how the columns after j make up for an error in column j.
    """
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(mean))
    return torch.linalg.cholesky(inverse, upper=True)


def _round_group(
    columns: Tensor, factor: Tensor, scale: Tensor, zero: Tensor
) -> tuple[Tensor, Tensor]:
    """Round the columns of a group in order, which changes them.

    Returns:
        Values, and errors divided by the diagonal of `factor`, both in the shape of `columns`.
    """
    values, errors = torch.empty_like(columns), torch.empty_like(columns)
    for index in range(columns.shape[1]):
        column = columns[:, index : index + 1]
        value = round_to_values(column, scale, zero)
        error = (column - (value - zero) * scale) / factor[index, index]
        values[:, index : index + 1], errors[:, index : index + 1] = value, error
        columns[:, index + 1 :] -= error * factor[index, index + 1 :]
    return values, errors
