"""Count the experts that decode batches use, in one batch that runs outside the CUDA graphs.

The routing of a batch of exactly `CENSUS_ROWS` requests, more than the largest graph holds, is
recorded. Its first n rows show which experts a batch of n would use. Timed batches are smaller and
not recorded.
"""

import json
import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

ROWS = "SGLANG_OMNI_CENSUS_ROWS"
FILE = "SGLANG_OMNI_CENSUS_FILE"


class ExpertCensus:
    """Hooks on every routing module of a decoder. The first rank writes the recorded expert ids."""

    def __init__(self, decoder: nn.Module, kind: type[nn.Module], rank: int) -> None:
        """Register the hooks.

        `kind` is the class of the modules that return SGLang's top-k output.
        """
        self._rows = int(os.environ.get(ROWS, 0))
        self._recording = False
        self._expert_ids: list[Tensor] = []
        if not self._rows or rank:
            return
        decoder.register_forward_pre_hook(self._begin, with_kwargs=True)
        for module in decoder.modules():
            if isinstance(module, kind):
                module.register_forward_hook(self._record)
        decoder.register_forward_hook(self._end)

    def _begin(self, _: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        batch = kwargs.get("forward_batch", args[2] if len(args) > 2 else None)
        capturing = torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()
        self._recording = (
            batch is not None
            and batch.forward_mode.is_decode()
            and not capturing
            and batch.batch_size == self._rows
        )
        self._expert_ids = []

    def _record(self, _: nn.Module, __: tuple[Any, ...], output: Any) -> None:
        if self._recording:
            self._expert_ids.append(output.topk_ids)

    def _end(self, _: nn.Module, __: tuple[Any, ...], ___: Any) -> None:
        if self._recording and self._expert_ids:
            layers = torch.stack([ids[: self._rows] for ids in self._expert_ids])
            # Replace the file atomically: it may be read at the same time.
            path = Path(os.environ[FILE])
            path.with_suffix(".new").write_text(json.dumps(layers.tolist()), encoding="utf-8")
            path.with_suffix(".new").replace(path)
        self._recording = False


def count_experts_used(layers: list[list[list[int]]], rows: int, experts: int) -> list[int]:
    """Return how many routed experts the first `rows` of a batch use in each layer.

    `layers` holds expert ids [layers, rows, top_k]; ids from `experts` on are shared experts.
    """
    return [len({id for row in layer[:rows] for id in row if id < experts}) for layer in layers]
