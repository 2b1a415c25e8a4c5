"""A prefill with query tokens is not replayed from a graph, which would lose their states."""

from types import SimpleNamespace
from typing import Any

import pytest
from sglang.srt.model_executor.forward_batch_info import ForwardMode
from sglang.srt.model_executor.runner.prefill_cuda_graph_runner import PrefillCudaGraphRunner
from sglang.srt.plugins.hook_registry import HookRegistry

from sglang_omni.models.ming.thinker.plugin import register
from sglang_omni.models.ming.thinker.query_states import DESTINATION, refuse_prefill_graph

QUERY = SimpleNamespace(model_specific_data={DESTINATION: object()}, offsets=[(1, 4)])
PICTURE = SimpleNamespace(model_specific_data={}, offsets=[(1, 4)])


def batch(*requests: list[SimpleNamespace], mode: ForwardMode = ForwardMode.EXTEND) -> Any:
    inputs = [SimpleNamespace(mm_items=items) if items else None for items in requests]
    return SimpleNamespace(
        forward_mode=mode, mm_inputs=inputs, contains_mm_inputs=lambda: any(requests)
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (batch([], []), True),
        (batch([], [PICTURE]), True),
        (batch([], [PICTURE, QUERY]), False),
        (batch([QUERY], mode=ForwardMode.DECODE), True),
    ],
    ids=["text", "picture", "query tokens", "after them"],
)
def test_only_query_tokens_keep_a_prefill_from_its_graph(given: Any, expected: bool) -> None:
    assert refuse_prefill_graph(lambda runner, batch: True, None, given) is expected
    assert refuse_prefill_graph(lambda runner, batch: False, None, given) is False


def test_sglang_asks_the_hook() -> None:
    register()
    HookRegistry.apply_hooks()
    # Without the hook, a runner that nobody initialised would fail.
    assert PrefillCudaGraphRunner.can_run_graph(object(), batch([QUERY])) is False
