"""Files of drawn images, in the format that a request asks for."""

import base64
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import numpy as np

from sglang_omni.entrypoints.requests.images import name_quality
from sglang_omni.media.image_file import encode_image, get_image_media_type
from sglang_omni.observability.trace import stage
from sglang_omni.pipeline.image_answer import AnswerEvents
from sglang_omni.pipeline.image_call import CallEvents, DrawingStarted
from sglang_omni.pipeline.image_request import CompletedImage, PartialImage
from sglang_omni.pipeline.request import Event
from sglang_omni.pipeline.work_threads import run_off_loop
from sglang_omni.protocol.images import DrawingFields
from sglang_omni.version import package_version

Json = dict[str, Any]


@dataclass(frozen=True)
class ImageFile:
    """A file with an image.

    Attributes:
        base64: Its content.
        media_type: Its type, such as `image/png`.
        description: Size, quality, background and format, as OpenAI's answers say them.
    """

    base64: str
    media_type: str
    description: Json

    @property
    def url(self) -> str:
        """Return the file as a data URI."""
        return f"data:{self.media_type};base64,{self.base64}"


@dataclass(frozen=True)
class FinishedFile(ImageFile):
    """The file of a finished image. `seed` draws it again."""

    seed: int


@dataclass(frozen=True)
class PreviewFile(ImageFile):
    """A file with what an image will probably be. The previews of an image have numbers from 0."""

    number: int


FileEvent = Event | DrawingStarted | PreviewFile | FinishedFile
FileEvents = AsyncGenerator[FileEvent, None]


@dataclass(frozen=True)
class ImageEncoder:
    """Makes files of images as the fields of a request say."""

    fields: DrawingFields

    async def encode(self, pixels: np.ndarray) -> bytes:
        """Return the file of an image, in the format of the request."""
        with stage("encode"):
            return await run_off_loop(
                pixels.nbytes,
                encode_image,
                pixels,
                self.fields.output_format,
                self.fields.output_compression,
                f"sglang-omni {package_version()}",
            )

    def describe(self, pixels: np.ndarray) -> Json:
        """Return what is said of an image in every form."""
        height, width = pixels.shape[:2]
        return {
            "size": f"{width}x{height}",
            "quality": name_quality(self.fields.quality),
            "background": "opaque",
            "output_format": self.fields.output_format,
        }

    async def encode_events(self, events: AnswerEvents | CallEvents) -> FileEvents:
        """Pass the events of an answer on, with files in place of pixels."""
        async with aclosing(events):
            async for event in events:
                if isinstance(event, PartialImage | CompletedImage):
                    yield await self._encode_event(event)
                else:
                    yield event

    async def _encode_event(
        self, event: PartialImage | CompletedImage
    ) -> PreviewFile | FinishedFile:
        data = await encode_base64(await self.encode(event.pixels))
        media_type = get_image_media_type(self.fields.output_format)
        description = self.describe(event.pixels)
        if isinstance(event, PartialImage):
            return PreviewFile(data, media_type, description, event.number)
        return FinishedFile(data, media_type, description, event.seed)


async def encode_base64(data: bytes) -> str:
    """Return a file as base64 text."""
    encoded: bytes = await run_off_loop(len(data), base64.b64encode, data)
    return encoded.decode("ascii")
