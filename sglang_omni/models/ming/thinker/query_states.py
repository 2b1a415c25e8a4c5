"""The final states at query tokens, collected over the chunks of a prefill.

SGLang hands `customized_info` of a forward pass to the requests whose prompt it completes. It calls
`copy` of each element once the pass has ended on the device, and sends the result on with the
request's output. So the states are read from the device then, and written where the caller wants
them; only their layout travels through SGLang.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from sglang.srt.managers.schedule_batch import MultimodalDataItem
from sglang.srt.model_executor.forward_batch_info import ForwardBatch
from torch import Tensor

INFO_KEY = "query_states"
DESTINATION = "states"
"""Name of an item's own datum that says where the states are written: a `StatesMemory`."""
_COLLECTED = "collected_states"


class StatesMemory(Protocol):
    """Where states are written; an object that can be pickled."""

    def write(self, array: np.ndarray) -> Any:
        """Write an array and return its layout. Raises `OSError` if nobody waits for it."""


class QueryStates:
    """The states of one request's query tokens, as far as they are computed."""

    def __init__(self, tokens: int, memory: StatesMemory) -> None:
        self._tokens, self._memory = tokens, memory
        self._parts: list[Tensor] = []

    @property
    def is_complete(self) -> bool:
        """Return whether all tokens have been computed."""
        return sum(map(len, self._parts)) == self._tokens

    def add(self, states: Tensor) -> None:
        """Keep a copy of the next states [tokens, hidden]: graphs reuse their output memory."""
        self._parts.append(states.clone())

    def copy(self) -> Any:
        """Write the states, bfloat16 as uint16 bits, and return their layout.

        Returns None if nobody waits for them: the request was cancelled meanwhile.
        """
        states = torch.cat(self._parts).cpu()
        bits = states.view(torch.uint16) if states.dtype == torch.bfloat16 else states
        try:
            return self._memory.write(bits.numpy())
        except OSError:
            return None


@dataclass(frozen=True)
class QuerySlice:
    """Rows [start, end) of a batch, which belong to the query tokens of one of its requests."""

    request: int
    states: QueryStates
    start: int
    end: int


def find_query_slices(batch: ForwardBatch) -> list[QuerySlice]:
    """Return what this pass computes of query tokens.

    A request whose query tokens are complete already has an empty slice. Call this before SGLang's
    embedding routine, which clears the multimodal inputs of the batch.
    """
    if batch.forward_mode.is_decode() or not batch.contains_mm_inputs():
        return []
    slices, offset = [], 0
    for index, (prefix, length) in enumerate(
        zip(batch.extend_prefix_lens_cpu, batch.extend_seq_lens_cpu, strict=True)
    ):
        for item in _iter_query_items(batch, index):
            ((first, last),) = item.offsets
            start, end = (min(max(at - prefix, 0), length) for at in (first, last + 1))
            slices.append(QuerySlice(index, _states_of(item), offset + start, offset + end))
        offset += length
    return slices


def has_query_tokens(batch: ForwardBatch) -> bool:
    """Return whether a request of the batch has query tokens, computed in this pass or not."""
    if batch.forward_mode.is_decode() or not batch.contains_mm_inputs():
        return False
    requests = range(len(batch.mm_inputs))
    return any(True for request in requests for _ in _iter_query_items(batch, request))


def refuse_prefill_graph(
    can_run_graph: Callable[..., bool], runner: Any, forward_batch: ForwardBatch
) -> bool:
    """Return whether SGLang may replay a prefill from a graph: not one with query tokens.

    Its runner of such graphs passes logits on and drops `customized_info`. This is a hook around
    the runner's own `can_run_graph`.
    """
    return not has_query_tokens(forward_batch) and can_run_graph(runner, forward_batch)


def collect_query_states(
    slices: list[QuerySlice], hidden: Tensor, requests: int
) -> dict[str, list[QueryStates | None]]:
    """Add the final states [tokens, hidden] of a pass; return SGLang's `customized_info`.

    It has the states of the requests whose query tokens are complete, None for all others.
    """
    info: list[QueryStates | None] = [None] * requests
    for part in slices:
        if part.start < part.end:
            part.states.add(hidden[part.start : part.end])
        if part.states.is_complete:
            info[part.request] = part.states
    return {INFO_KEY: info}


def _iter_query_items(batch: ForwardBatch, request: int) -> Iterator[MultimodalDataItem]:
    inputs = batch.mm_inputs[request]
    for item in inputs.mm_items if inputs is not None else ():
        if DESTINATION in item.model_specific_data:
            yield item


def _states_of(item: MultimodalDataItem) -> QueryStates:
    """Return the states collected so far; they live as long as the request's item."""
    data = item.model_specific_data
    if _COLLECTED not in data:
        ((first, last),) = item.offsets
        data[_COLLECTED] = QueryStates(last + 1 - first, data[DESTINATION])
    states: QueryStates = data[_COLLECTED]
    return states
