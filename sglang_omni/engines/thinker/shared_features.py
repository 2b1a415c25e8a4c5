"""Feature rows for SGLang's schedulers, passed by reference.

SGLang would copy tensors into its own shared memory and out of it again. Feature rows are in shared
memory already, so a scheduler maps them without a copy.
"""

import torch
from torch import Tensor

from sglang_omni.engines.runtime.shared_array import Layout, SharedArray
from sglang_omni.engines.thinker.contract import Features


class SharedFeatureRef:
    """A reference to feature rows [tokens, hidden]. It unpickles as a tensor.

    Its pickles are valid while this object lives, even after the owner of the rows ends.
    """

    def __init__(self, features: Features) -> None:
        """Open the rows.

        Raises:
            OSError: The owner of the rows is gone.
        """
        self._memory, self._layout = features.rows.duplicate(), features.layout

    def __reduce__(self) -> tuple[object, ...]:
        return map_rows, (self._memory, self._layout)


def map_rows(memory: SharedArray, layout: Layout) -> Tensor:
    """Map rows in shared memory as a tensor: float32, or bfloat16 for an array of uint16 bits."""
    rows = torch.from_numpy(memory.read(layout))
    return rows.view(torch.bfloat16) if rows.dtype == torch.uint16 else rows
