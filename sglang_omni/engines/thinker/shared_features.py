"""Feature rows on their way to SGLang's schedulers, by reference.

SGLang copies what it is sent into shared memory of its own and out of it again. Rows lie in shared
memory already: a scheduler maps them where they are.
"""

import torch
from torch import Tensor

from sglang_omni.engines.runtime.shared_array import Layout, SharedArray
from sglang_omni.engines.thinker.contract import Features


class SharedFeatureRef:
    """The rows [tokens, hidden] of a medium. Pickled it is a reference, unpickled a tensor.

    The reference is good for as long as there is this, whatever becomes of the rows' maker.
    """

    def __init__(self, features: Features) -> None:
        """Raises `OSError` when their maker is gone."""
        self._memory, self._layout = features.rows.duplicate(), features.layout

    def __reduce__(self) -> tuple[object, ...]:
        return mapped_rows, (self._memory, self._layout)


def mapped_rows(memory: SharedArray, layout: Layout) -> Tensor:
    """The rows as they lie in shared memory, not copied: float32, or bfloat16 where the array has
    the bits of such."""
    rows = torch.from_numpy(memory.read(layout))
    return rows.view(torch.bfloat16) if rows.dtype == torch.uint16 else rows
