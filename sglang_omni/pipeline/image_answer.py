"""Answers that have an image: alone, after text and speech, or where the model calls for one."""

import json
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass, replace

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
from sglang_omni.protocol.tools import ToolCall, ToolCallDelta, ToolCallStart

# The function that the model calls for an image, by the name of OpenAI's tool.
IMAGE_FUNCTION = "image_generation"
PROMPT_ARGUMENT = "prompt"
# A request with no time left fails at once, with the error of its time limit.
_NO_TIME_S = 1e-3


@dataclass(frozen=True)
class ImageStarted:
    """An image is being drawn. `prompt` is the model's own one; None for the conversation."""

    prompt: str | None = None


AnswerEvent = Event | ImageStarted | PartialImage | CompletedImage
AnswerEvents = AsyncGenerator[AnswerEvent, None]
Draw = Callable[[ImageRequest], AsyncGenerator[ImageEvent, None]]


@dataclass(frozen=True)
class Drawing:
    """An image to draw, and the prompt of its `ImageStarted`."""

    request: ImageRequest
    prompt: str | None = None


def answer_with_image(request: ImageRequest, draw: Draw) -> AnswerEvents:
    """Answer with an image alone. The last event is `Finished`. Raises `EngineFailed`."""
    return _draw_all([Drawing(request)], draw, Finished("stop", Usage()))


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
    drawings = [Drawing(limit_time(request, started_at))]
    if has_called or finished.invalid_calls:
        drawings = []
    async with aclosing(_draw_all(drawings, draw, finished)) as events:
        async for drawn in events:
            yield drawn


async def draw_called_images(
    answer: AsyncGenerator[Event, None],
    build_request: Callable[[str], ImageRequest],
    draw: Draw,
    max_images: int,
) -> AnswerEvents:
    """Pass an answer on without its calls of `IMAGE_FUNCTION`, and draw their images behind it.

    Calls beyond `max_images` and calls without a prompt count as invalid ones.

    Args:
        answer: The answer of the model, which may call the function.
        build_request: Returns the request of an image from the prompt that the model wrote.
        draw: Draws.
        max_images: The maximum number of images.

    Raises:
        EngineFailed: An image was not finished.
    """
    started_at, is_image_call = time.monotonic(), False
    prompts: list[str | None] = []
    finished: Finished | None = None
    async with aclosing(answer):
        async for event in answer:
            match event:
                case Finished():
                    finished = event
                    break
                case ToolCalled(call) if call.name == IMAGE_FUNCTION:
                    prompts.append(read_prompt(call))
                    continue
                case ToolCallStart(name):
                    is_image_call = name == IMAGE_FUNCTION
            if not (is_image_call and isinstance(event, ToolCallStart | ToolCallDelta)):
                yield event
    assert finished is not None
    valid = [prompt for prompt in prompts if prompt is not None][:max_images]
    invalid_calls = finished.invalid_calls + len(prompts) - len(valid)
    drawings = (Drawing(limit_time(build_request(one), started_at), one) for one in valid)
    finished = replace(finished, invalid_calls=invalid_calls)
    async with aclosing(_draw_all(drawings, draw, finished)) as events:
        async for drawn in events:
            yield drawn


def read_prompt(call: ToolCall) -> str | None:
    """Return the prompt in the arguments of a call of `IMAGE_FUNCTION`, None without one."""
    arguments = json.loads(call.arguments)
    prompt = arguments.get(PROMPT_ARGUMENT) if isinstance(arguments, dict) else None
    return prompt if isinstance(prompt, str) and prompt.strip() else None


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


async def _draw_all(drawings: Iterable[Drawing], draw: Draw, finished: Finished) -> AnswerEvents:
    """Yield the events of images, one after the other, and `finished` with what they used."""
    usage = finished.usage
    for drawing in drawings:
        async with aclosing(_draw_one(drawing, draw)) as events:
            async for event in events:
                if isinstance(event, ImagesFinished):
                    usage = add_image_usage(usage, event.usage)
                else:
                    yield event
    yield replace(finished, usage=usage)


async def _draw_one(
    drawing: Drawing, draw: Draw
) -> AsyncGenerator[ImageStarted | PartialImage | CompletedImage | ImagesFinished, None]:
    """Yield `ImageStarted` once the drawing has begun, and the events of the image.

    Raises `EngineFailed` if the last one, `ImagesFinished`, is missing.
    """
    has_started = is_finished = False
    async with aclosing(draw(drawing.request)) as events:
        async for event in events:
            if not has_started:
                has_started = True
                yield ImageStarted(drawing.prompt)
            is_finished = isinstance(event, ImagesFinished)
            if not isinstance(event, ImageStep):
                yield event
    if not is_finished:
        raise EngineFailed("the image was not finished")
