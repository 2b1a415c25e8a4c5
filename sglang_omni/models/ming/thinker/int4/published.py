"""Published layouts of four-bit weights: compressed-tensors, AWQ and GPTQ.

Each stores an expert's matrix [rows, columns] as words of eight values and, per group of 128
columns, a scale and a zero. `PublishedForm` turns every tensor, on its own, into the layout of the
kernels; values, scales and zeros stay what they are. What is not understood is refused by name.

* compressed-tensors: `weight_packed` [rows, columns / 8], `weight_scale` [rows, groups] and
  `weight_zero_point` [rows / 8, groups].
* AWQ (GEMM): `qweight` [columns, rows / 8], `scales` [groups, rows] and `qzeros` [groups, rows / 8]
  with the rows of a word interleaved.
* GPTQ: `qweight` [columns / 8, rows], `scales` [groups, rows] and `qzeros` [groups, rows / 8]; the
  first version stores zeros less one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from sglang_omni.models.ming.thinker.int4.layout import (
    GROUP,
    MAX_VALUE,
    PACKED,
    SCALE,
    SYMMETRIC_ZERO,
    ZERO,
    PublishedLayout,
    check_int4_shape,
    is_expert_matrix,
    strip_weight,
)
from sglang_omni.models.ming.thinker.int4.weights import pack_values, tile_groups
from sglang_omni.protocol.errors import CheckpointError

VALUES = 8
"""Values of an int32 word."""
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)
"""Which of eight rows each four bits of an AWQ word hold, from the lowest."""

Shape = tuple[int, ...]


@dataclass(frozen=True)
class _Tensor:
    """One stored tensor of a matrix.

    `shape` gives its sizes from the rows, columns and groups of the matrix; `part` is what it
    becomes, or None if it is only checked; `read` returns [rows, columns] or [rows, groups].
    """

    shape: Callable[[int, int, int], Shape]
    part: str | None
    read: Callable[[Tensor], Tensor]


class PublishedForm:
    """The stored form (`stored_forms.StoredForm`) of experts in a published layout.

    Other matrices are stored as they are.
    """

    hint = "; of a checkpoint in this layout, only experts may be quantized"

    def __init__(self, layout: PublishedLayout) -> None:
        self._layout, self._tensors = layout, _TENSORS[layout.name](layout)

    def list_stored(self, shapes: Mapping[str, Shape]) -> dict[str, Shape]:
        """See `StoredForm`."""
        stored: dict[str, Shape] = {}
        for name, shape in shapes.items():
            if not is_expert_matrix(name):
                stored[name] = shape
                continue
            rows, columns = shape
            if rows % GROUP or columns % GROUP:
                raise CheckpointError(
                    f"{name!r} of shape {list(shape)} cannot be read from {self._layout.name}: "
                    f"its sizes must be multiples of {GROUP}"
                )
            stem = strip_weight(name)
            for suffix, tensor in self._tensors.items():
                stored[stem + suffix] = tensor.shape(rows, columns, columns // GROUP)
        return stored

    def convert(self, name: str, tensor: Tensor) -> tuple[str, Tensor] | None:
        """See `StoredForm`."""
        stem, _, suffix = name.rpartition(".")
        stored = self._tensors.get(suffix)
        if stored is None or not is_expert_matrix(f"{stem}.weight"):
            return name, tensor
        read = stored.read(tensor)
        if stored.part is None:
            return None
        if stored.part == PACKED:
            check_int4_shape(tuple(read.shape))
            return f"{stem}.{PACKED}", pack_values(read.contiguous())
        return f"{stem}.{stored.part}", tile_groups(read.contiguous())


def unpack_words(words: Tensor) -> Tensor:
    """Return the values [n, 8 * m] of int32 words [n, m], the lowest four bits first."""
    parts = [words >> 4 * index & MAX_VALUE for index in range(VALUES)]
    return torch.stack(parts, dim=-1).flatten(1).to(torch.uint8)


def _unpack_awq(words: Tensor) -> Tensor:
    """Return the values [n, 8 * m] of interleaved int32 words [n, m]."""
    order = torch.tensor(AWQ_ORDER, device=words.device).argsort()
    return unpack_words(words).unflatten(1, (-1, VALUES))[..., order].flatten(1)


def _transpose(tensor: Tensor) -> Tensor:
    return tensor.T


def _as_zero(values: Tensor) -> Tensor:
    return values.to(torch.int16)


def _keep(tensor: Tensor) -> Tensor:
    return tensor


def _list_compressed_tensors(layout: PublishedLayout) -> dict[str, _Tensor]:
    tensors = {
        "weight_packed": _Tensor(lambda n, k, _: (n, k // VALUES), PACKED, unpack_words),
        "weight_scale": _Tensor(lambda n, _, g: (n, g), SCALE, _keep),
        # The strict loader has compared the shape of the words, which says the same.
        "weight_shape": _Tensor(lambda *_: (2,), None, _keep),
    }
    if not layout.symmetric:
        tensors["weight_zero_point"] = _Tensor(
            lambda n, _, g: (n // VALUES, g), ZERO, lambda words: _as_zero(unpack_words(words.T).T)
        )
    return tensors


def _list_awq(_: PublishedLayout) -> dict[str, _Tensor]:
    return {
        "qweight": _Tensor(
            lambda n, k, _: (k, n // VALUES), PACKED, lambda words: _unpack_awq(words).T
        ),
        "scales": _Tensor(lambda n, _, g: (g, n), SCALE, _transpose),
        "qzeros": _Tensor(
            lambda n, _, g: (g, n // VALUES), ZERO, lambda words: _as_zero(_unpack_awq(words).T)
        ),
    }


def _list_gptq(layout: PublishedLayout) -> dict[str, _Tensor]:
    def read_zeros(words: Tensor) -> Tensor:
        zeros = _as_zero(unpack_words(words).T) + layout.zero_offset
        if layout.symmetric and bool((zeros != SYMMETRIC_ZERO).any()):
            raise CheckpointError("a GPTQ checkpoint that is symmetric has zeros other than 8")
        return zeros

    return {
        "qweight": _Tensor(
            lambda n, k, _: (k // VALUES, n), PACKED, lambda words: unpack_words(words.T)
        ),
        "scales": _Tensor(lambda n, _, g: (g, n), SCALE, _transpose),
        "qzeros": _Tensor(
            lambda n, _, g: (g, n // VALUES), None if layout.symmetric else ZERO, read_zeros
        ),
        "g_idx": _Tensor(lambda _, k, __: (k,), None, _check_order),
    }


def _check_order(groups: Tensor) -> Tensor:
    """Refuse columns that are not in the order of their groups."""
    expected = torch.arange(len(groups), dtype=groups.dtype, device=groups.device) // GROUP
    if not torch.equal(groups, expected):
        raise CheckpointError("GPTQ with columns in another order (act-order) is not supported")
    return groups


_TENSORS: Mapping[str, Callable[[PublishedLayout], dict[str, _Tensor]]] = {
    "compressed-tensors": _list_compressed_tensors,
    "awq": _list_awq,
    "gptq": _list_gptq,
}
