"""Makes sure that an answer is complete."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from sglang_omni.observability.trace import Trace, current_trace
from sglang_omni.pipeline.request import AudioDelta, Event, Finished, TextDelta
from sglang_omni.protocol.errors import EngineFailed


async def require_finished(events: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:
    """Pass events on up to `Finished`, so that no client takes a truncated answer for complete.

    Raises:
        EngineFailed: The server aborted the answer, or `Finished` is missing.
    """
    trace = current_trace()
    async with aclosing(events):
        async for event in events:
            if trace is not None:
                _record_in_trace(trace, event)
            if isinstance(event, Finished):
                if event.reason == "abort":
                    raise EngineFailed("the server aborted the answer")
                yield event
                return
            yield event
    raise EngineFailed("the answer ended without its final event")


def _record_in_trace(trace: Trace, event: Event) -> None:
    if isinstance(event, AudioDelta):
        trace.record_audio(event.pcm.size)
    elif isinstance(event, TextDelta):
        trace.record_text()
