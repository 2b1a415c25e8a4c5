"""Which experts decode batches really use, counted in one batch that runs outside the CUDA graphs.

A batch of exactly `CENSUS_ROWS` requests, more than the largest graph holds, is looked at; of its
first n rows one sees what a batch of n would touch. Timed batches are smaller, and untouched.
"""

import json
import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

ROWS = "SGLANG_OMNI_CENSUS_ROWS"
FILE = "SGLANG_OMNI_CENSUS_FILE"


class Census:
    """Hooks on every routing module of a decoder; the first rank writes what they saw."""

    def __init__(self, decoder: nn.Module, kind: type[nn.Module], rank: int) -> None:
        """`kind` is the class of the modules that return SGLang's top-k output."""
        self._rows = int(os.environ.get(ROWS, 0))
        self._looking = False
        self._seen: list[Tensor] = []
        if not self._rows or rank:
            return
        decoder.register_forward_pre_hook(self._begin, with_kwargs=True)
        for module in decoder.modules():
            if isinstance(module, kind):
                module.register_forward_hook(self._note)
        decoder.register_forward_hook(self._end)

    def _begin(self, _: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        batch = named.get("forward_batch", given[2] if len(given) > 2 else None)
        capturing = torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()
        decode = batch is not None and batch.forward_mode.is_decode()
        self._looking = decode and not capturing and batch.batch_size == self._rows
        self._seen = []

    def _note(self, _: nn.Module, __: tuple[Any, ...], output: Any) -> None:
        if self._looking:
            self._seen.append(output.topk_ids)

    def _end(self, _: nn.Module, __: tuple[Any, ...], ___: Any) -> None:
        if self._looking and self._seen:
            layers = torch.stack([ids[: self._rows] for ids in self._seen])
            # Replaced, never rewritten: the reader may be at it.
            path = Path(os.environ[FILE])
            path.with_suffix(".new").write_text(json.dumps(layers.tolist()), encoding="utf-8")
            path.with_suffix(".new").replace(path)
        self._looking = False


def experts_touched(layers: list[list[list[int]]], rows: int, experts: int) -> list[int]:
    """Routed experts that the first `rows` of a batch use in each layer.

    `layers` holds expert ids [layers, rows, top_k]; ids from `experts` on are shared experts.
    """
    return [len({id for row in layer[:rows] for id in row if id < experts}) for layer in layers]
