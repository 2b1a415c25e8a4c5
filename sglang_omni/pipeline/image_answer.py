"""Answers that have an image: alone, or after text and speech."""

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace

from sglang_omni.pipeline.image_request import (
    CompletedImage,
    ImageEvent,
    ImageRequest,
    ImagesFinished,
    ImageStep,
    ImageUsage,
    PartialImage,
)
from sglang_omni.pipeline.request import Event, Finished, ToolCalled, Usage
from sglang_omni.protocol.errors import EngineFailed
from sglang_omni.protocol.tools import ToolCallStart

# A request with no time left fails at once, with the error of its time limit.
_NO_TIME_S = 1e-3


AnswerEvent = Event | PartialImage | CompletedImage
AnswerEvents = AsyncGenerator[AnswerEvent, None]
Draw = Callable[[ImageRequest], AsyncGenerator[ImageEvent, None]]


def answer_with_image(request: ImageRequest, draw: Draw) -> AnswerEvents:
    """Answer with an image alone. The last event is `Finished`. Raises `EngineFailed`."""
    return _draw_last(request, draw, Finished("stop", Usage()))


async def append_image(
    answer: AsyncGenerator[Event, None], request: ImageRequest, draw: Draw
) -> AnswerEvents:
    """Pass an answer on, and draw an image behind it, unless it calls functions.

    Both share the time limit of the request. Raises `EngineFailed`.
    """
    started_at, has_called = time.monotonic(), False
    finished: Finished | None = None
    async with aclosing(answer):
        async for event in answer:
            if isinstance(event, Finished):
                finished = event
                break
            has_called = has_called or isinstance(event, ToolCallStart | ToolCalled)
            yield event
    assert finished is not None
    if has_called or finished.invalid_calls:
        yield finished
        return
    async with aclosing(_draw_last(limit_time(request, started_at), draw, finished)) as events:
        async for drawn in events:
            yield drawn


def add_image_usage(usage: Usage, image: ImageUsage) -> Usage:
    """Return the usage of an answer and of an image of it, whose prompt is one of its own."""
    return replace(
        usage,
        prompt_tokens=usage.prompt_tokens + image.input_tokens,
        prompt_image_tokens=usage.prompt_image_tokens + image.image_tokens,
        image_tokens=usage.image_tokens + image.output_tokens,
    )


def limit_time(request: ImageRequest, started_at: float) -> ImageRequest:
    """Return a request that has the time which is left since `started_at`, a monotonic time."""
    if request.timeout_s is None:
        return request
    left_s = request.timeout_s - (time.monotonic() - started_at)
    return replace(request, timeout_s=max(left_s, _NO_TIME_S))


async def _draw_last(request: ImageRequest, draw: Draw, finished: Finished) -> AnswerEvents:
    """Yield the events of an image, and `finished` with what the image used.

    Raises `EngineFailed` if the last event of the image, `ImagesFinished`, is missing.
    """
    usage: ImageUsage | None = None
    async with aclosing(draw(request)) as events:
        async for event in events:
            if isinstance(event, ImagesFinished):
                usage = event.usage
            elif not isinstance(event, ImageStep):
                yield event
    if usage is None:
        raise EngineFailed("the image was not finished")
    yield replace(finished, usage=add_image_usage(finished.usage, usage))
