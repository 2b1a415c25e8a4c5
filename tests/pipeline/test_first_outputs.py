"""Which answers wait for their first output."""

from collections.abc import AsyncGenerator

import numpy as np
import pytest

from sglang_omni.pipeline.first_outputs import FirstOutputs
from sglang_omni.pipeline.request import (
    AudioDelta,
    Event,
    ReasoningDelta,
    Started,
    TextDelta,
)
from sglang_omni.protocol.tools import ToolCallStart

AUDIO = AudioDelta(np.zeros(3, np.float32))


async def events_of(*events: Event) -> AsyncGenerator[Event, None]:
    for event in events:
        yield event


async def counts(outputs: FirstOutputs, is_spoken: bool, *events: Event) -> list[int]:
    """Return how many answers wait at each event, and after the last."""
    tracked = outputs.track(events_of(*events), is_spoken)
    found = [outputs.waiting.value async for _ in tracked]
    return [*found, outputs.waiting.value]


async def test_a_written_answer_waits_for_its_first_text() -> None:
    outputs = FirstOutputs()
    seen = await counts(outputs, False, Started(), TextDelta("a"), TextDelta("b"))
    assert seen == [1, 0, 0, 0]


@pytest.mark.parametrize("first", [ReasoningDelta("a"), ToolCallStart("f")])
async def test_thoughts_and_calls_are_outputs_of_a_written_answer(first: Event) -> None:
    assert await counts(FirstOutputs(), False, first, TextDelta("b")) == [0, 0, 0]


async def test_a_spoken_answer_waits_for_its_first_audio() -> None:
    seen = await counts(FirstOutputs(), True, TextDelta("a"), AUDIO, TextDelta("b"))
    assert seen == [1, 0, 0, 0]


async def test_an_answer_that_ends_without_output_waits_no_more() -> None:
    assert await counts(FirstOutputs(), True, TextDelta("a")) == [1, 0]
    outputs = FirstOutputs()
    tracked = outputs.track(events_of(Started(), TextDelta("a")), False)
    await anext(tracked)
    assert outputs.waiting.value == 1
    await tracked.aclose()
    assert outputs.waiting.value == 0


async def test_an_answer_that_fails_waits_no_more() -> None:
    async def failing() -> AsyncGenerator[Event, None]:
        yield Started()
        raise ValueError

    outputs = FirstOutputs()
    with pytest.raises(ValueError):  # noqa: PT011
        [event async for event in outputs.track(failing(), False)]
    assert outputs.waiting.value == 0
