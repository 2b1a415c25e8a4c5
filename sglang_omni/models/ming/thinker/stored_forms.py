"""How a checkpoint stores the thinker's tensors: as they are, in FP8, or in four bits.

A form says which tensors a checkpoint must have, and turns each into what the model loads.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from torch import Tensor

from sglang_omni.models.ming.thinker.fp8_layout import add_scales, has_fp8_head, is_block_fp8
from sglang_omni.models.ming.thinker.int4.layout import (
    is_int4,
    list_int4_tensors,
    read_published_layout,
)
from sglang_omni.models.ming.thinker.int4.published import PublishedForm

Shapes = Mapping[str, tuple[int, ...]]


class StoredForm(Protocol):
    """The stored form of the thinker's tensors.

    `hint` is added to the message about a tensor that no such checkpoint has.
    """

    hint: str

    def list_stored(self, shapes: Shapes) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the stored tensors from those of a bfloat16 checkpoint.

        Raises:
            CheckpointError: A size cannot be stored in this form.
        """
        ...

    def convert(self, name: str, tensor: Tensor) -> tuple[str, Tensor] | None:
        """Return the name and value that the model loads for a stored tensor.

        None for a tensor that only had to be checked.

        Raises:
            CheckpointError: The tensor holds what this form does not support.
        """
        ...


class PlainForm:
    """Every tensor as it is."""

    hint = ""

    def list_stored(self, shapes: Shapes) -> dict[str, tuple[int, ...]]:
        """See `StoredForm`."""
        return dict(shapes)

    def convert(self, name: str, tensor: Tensor) -> tuple[str, Tensor]:
        """See `StoredForm`."""
        return name, tensor


class Fp8Form(PlainForm):
    """Matrices in blocks of FP8 (`fp8_layout`), with `fp8_head` the output head too."""

    def __init__(self, fp8_head: bool = False) -> None:
        self._fp8_head = fp8_head

    def list_stored(self, shapes: Shapes) -> dict[str, tuple[int, ...]]:
        """See `StoredForm`."""
        return add_scales(shapes, self._fp8_head)


class Int4Form(PlainForm):
    """Experts in four bits, other matrices in FP8, as `sgl-omni quantize --int4` writes them."""

    def __init__(self, symmetric: bool, fp8_head: bool = False) -> None:
        self._symmetric = symmetric
        self._fp8_head = fp8_head

    def list_stored(self, shapes: Shapes) -> dict[str, tuple[int, ...]]:
        """See `StoredForm`."""
        return list_int4_tensors(shapes, self._symmetric, self._fp8_head)


def read_stored_form(config: Mapping[str, Any] | None) -> StoredForm:
    """Return the form that `quantization_config` of a `config.json` names; None is plain.

    Raises:
        CheckpointError: The form is not supported.
    """
    if config is None:
        return PlainForm()
    if is_int4(config):
        layout = read_published_layout(config)
        if layout is not None:
            return PublishedForm(layout)
        return Int4Form(bool(config["symmetric"]), has_fp8_head(config))
    is_block_fp8(config)
    return Fp8Form(has_fp8_head(config))
