"""Answers of the image routes: a JSON object with all images, or events while they are drawn."""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import numpy as np

from sglang_omni.entrypoints.http.responses.image_files import ImageEncoder, encode_base64
from sglang_omni.entrypoints.http.responses.sse import NamedEvent, encode_json
from sglang_omni.pipeline.image_request import (
    CompletedImage,
    ImageEvent,
    ImagesFinished,
    ImageStep,
    ImageUsage,
    PartialImage,
)
from sglang_omni.pipeline.work_threads import run_off_loop
from sglang_omni.protocol.errors import EngineFailed
from sglang_omni.protocol.images import ImageFields, ImageFileFormat

Json = dict[str, Any]
ImageEvents = AsyncGenerator[ImageEvent, None]
StoreFile = Callable[[bytes, ImageFileFormat], Awaitable[str]]
"""Stores a file and returns its URL."""


@dataclass(frozen=True)
class ImageAnswer:
    """How the images of a request are sent."""

    body: ImageFields
    store_file: StoreFile

    @property
    def encoder(self) -> ImageEncoder:
        """Return what makes the files."""
        return ImageEncoder(self.body)

    async def build_item(self, image: CompletedImage) -> Json:
        """Return an image as an entry of `data`."""
        data = await self.encoder.encode(image.pixels)
        if self.body.response_format == "url":
            content = {"url": await self.store_file(data, self.body.output_format)}
        else:
            content = {"b64_json": await encode_base64(data)}
        return {**content, "seed": image.seed}


def build_usage(usage: ImageUsage) -> Json:
    """Return token counts in OpenAI's form."""
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {
            "text_tokens": usage.text_tokens,
            "image_tokens": usage.image_tokens,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"text_tokens": 0, "image_tokens": usage.output_tokens},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


async def collect_images(events: ImageEvents, answer: ImageAnswer) -> bytes:
    """Return the JSON object with all images, in the order of their seeds.

    Raises:
        EngineFailed: The events ended too early.
    """
    items: dict[int, Json] = {}
    about: Json = {}
    usage: ImageUsage | None = None
    async with aclosing(events):
        async for event in events:
            if isinstance(event, CompletedImage):
                items[event.index] = await answer.build_item(event)
                about = answer.encoder.describe(event.pixels)
            elif isinstance(event, ImagesFinished):
                usage = event.usage
    if usage is None:
        raise EngineFailed("the images were not finished")
    data = [items[index] for index in sorted(items)]
    size = sum(len(item.get("b64_json", "")) for item in data)
    whole = {"created": int(time.time()), **about, "data": data, "usage": build_usage(usage)}
    return await run_off_loop(size, encode_json, whole)


async def stream_images(
    events: ImageEvents, answer: ImageAnswer, kind: str
) -> AsyncGenerator[NamedEvent, None]:
    """Yield OpenAI's events: previews of each image, and the image itself.

    A request with `progress` gets an event after each step as well. With several images an event
    tells which one by `image_index`. `kind` is the beginning of the events' names. Raises as
    `collect_images` does.
    """
    is_finished = False
    extra: Json
    async with aclosing(events):
        async for event in events:
            match event:
                case ImageStep() if answer.body.progress:
                    yield _build_progress(f"{kind}.progress", event)
                case PartialImage(index, number, pixels):
                    extra = {"partial_image_index": number}
                    name = f"{kind}.partial_image"
                    yield await _build_event(name, answer, index, pixels, extra)
                case CompletedImage(index, pixels, seed, usage):
                    extra = {"seed": seed, "usage": build_usage(usage)}
                    yield await _build_event(f"{kind}.completed", answer, index, pixels, extra)
                case ImagesFinished():
                    is_finished = True
    if not is_finished:
        raise EngineFailed("the images were not finished")


def _build_progress(name: str, event: ImageStep) -> NamedEvent:
    data: Json = {
        "type": name,
        "image_index": event.index,
        "step": event.step,
        "num_steps": event.num_steps,
    }
    return NamedEvent(name, data)


async def _build_event(
    name: str, answer: ImageAnswer, index: int, pixels: np.ndarray, extra: Json
) -> NamedEvent:
    data: Json = {
        "type": name,
        "b64_json": await encode_base64(await answer.encoder.encode(pixels)),
        "created_at": int(time.time()),
        **answer.encoder.describe(pixels),
        "image_index": index,
        **extra,
    }
    # An image of megabytes would hold up the event loop for milliseconds.
    return NamedEvent(name, await run_off_loop(len(data["b64_json"]), encode_json, data))
