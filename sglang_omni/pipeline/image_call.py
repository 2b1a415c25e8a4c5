"""Answers whose images are calls of a tool: one that was asked for, or those that a model made."""

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace

from sglang_omni.pipeline.image_answer import AnswerEvent, Draw, add_image_usage, limit_time
from sglang_omni.pipeline.image_request import ImageRequest, ImagesFinished, ImageStep, ImageUsage
from sglang_omni.pipeline.request import Event, Finished, ToolCalled, Usage
from sglang_omni.protocol.errors import EngineFailed
from sglang_omni.protocol.tools import ToolCall, ToolCallDelta, ToolCallStart


@dataclass(frozen=True)
class DrawingStarted:
    """An image is being drawn. `prompt` is what the model asked for, if it was asked."""

    prompt: str | None = None


CallEvent = AnswerEvent | DrawingStarted
CallEvents = AsyncGenerator[CallEvent, None]


@dataclass(frozen=True)
class CalledImage:
    """An image that the model asked for: its prompt, and the request that draws it."""

    prompt: str
    request: ImageRequest


@dataclass(frozen=True)
class ImageTool:
    """A tool of the server's own.

    Attributes:
        name: Its name for the model.
        max_images: The most images of one answer.
        read: Returns the image that a call asks for, or None if its arguments are of no use.
    """

    name: str
    max_images: int
    read: Callable[[ToolCall], CalledImage | None]


async def answer_with_call(request: ImageRequest, draw: Draw) -> CallEvents:
    """Answer with an image alone. The last event is `Finished`. Raises `EngineFailed`."""
    drawing = _Drawing(DrawingStarted())
    async with aclosing(drawing.run(request, draw)) as events:
        async for event in events:
            yield event
    yield Finished("stop", add_image_usage(Usage(), drawing.usage))


async def draw_called_images(
    answer: AsyncGenerator[Event, None], tool: ImageTool, draw: Draw
) -> CallEvents:
    """Pass an answer on, and draw the images that it calls the tool for.

    All of it shares the time limit of the request. Calls of the tool that cannot be drawn are
    counted as invalid. Raises `EngineFailed`.
    """
    started_at, is_called = time.monotonic(), False
    usages: list[ImageUsage] = []
    num_invalid = 0
    async with aclosing(answer):
        async for event in answer:
            match event:
                case ToolCallStart(name=name):
                    is_called = name == tool.name
                    if not is_called:
                        yield event
                case ToolCallDelta() if is_called:
                    pass
                case ToolCalled(call=call) if call.name == tool.name:
                    is_called = False
                    image = tool.read(call) if len(usages) < tool.max_images else None
                    if image is None:
                        num_invalid += 1
                        continue
                    drawing = _Drawing(DrawingStarted(image.prompt))
                    request = limit_time(image.request, started_at)
                    async with aclosing(drawing.run(request, draw)) as events:
                        async for drawn in events:
                            yield drawn
                    usages.append(drawing.usage)
                case Finished():
                    yield _finish(event, usages, num_invalid)
                case _:
                    yield event


def _finish(finished: Finished, usages: list[ImageUsage], num_invalid: int) -> Finished:
    usage = finished.usage
    for one in usages:
        usage = add_image_usage(usage, one)
    return replace(finished, usage=usage, invalid_calls=finished.invalid_calls + num_invalid)


class _Drawing:
    """One image in progress. `usage` is known when its events have ended."""

    def __init__(self, started: DrawingStarted) -> None:
        self._started: DrawingStarted | None = started
        self._usage: ImageUsage | None = None

    @property
    def usage(self) -> ImageUsage:
        """Return what the image used. Raises `EngineFailed` if it was not finished."""
        if self._usage is None:
            raise EngineFailed("the image was not finished")
        return self._usage

    async def run(self, request: ImageRequest, draw: Draw) -> CallEvents:
        """Yield `DrawingStarted` when the first step is done, then the image's events."""
        async with aclosing(draw(request)) as events:
            async for event in events:
                if self._started is not None:
                    yield self._started
                    self._started = None
                if isinstance(event, ImagesFinished):
                    self._usage = event.usage
                elif not isinstance(event, ImageStep):
                    yield event
