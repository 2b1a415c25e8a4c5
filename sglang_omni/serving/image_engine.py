"""Holds the image engine: its processes, and what is asked of the model in the API process."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from sglang_omni.admission.controller import AdmissionController
from sglang_omni.config.tree import Config
from sglang_omni.engines.image.contract import ImageSettings
from sglang_omni.engines.runtime.process import Engine
from sglang_omni.engines.runtime.shared_array import SharedArray
from sglang_omni.models.base import ModelFamily
from sglang_omni.models.chat import ChatFormat
from sglang_omni.models.registry import family_of
from sglang_omni.pipeline.draw import ImagePipeline, QueryRows
from sglang_omni.pipeline.first_outputs import FirstOutputs
from sglang_omni.pipeline.image_request import ImageRequest
from sglang_omni.pipeline.request import ChatRequest, Event
from sglang_omni.pipeline.respond import Admit
from sglang_omni.protocol.errors import ImagesUnavailable
from sglang_omni.serving.autoscaling import create_pool
from sglang_omni.serving.image_config import (
    build_image_specs,
    draws_images,
    explain_no_images,
)
from sglang_omni.serving.media_engines import MediaEngines


class ImageEngine:
    """The replicas of the image engine (`pool`), and the model's `format` of images.

    `first_outputs` are the answers that images give way to.
    """

    def __init__(self, config: Config, checkpoint: Path, chat: ChatFormat) -> None:
        """Create the engine without starting it. Raises `StartupError`."""
        self.first_outputs = FirstOutputs()
        specs = build_image_specs(config, checkpoint, self.first_outputs.waiting)
        # An engine on another machine has other settings, and rests for nobody here.
        self._rests = any(
            isinstance(spec.settings, ImageSettings) and spec.settings.waiting is not None
            for spec in specs
        )
        self.pool = create_pool(config, specs)
        self.format = family_of(checkpoint).image_format(checkpoint, chat)
        self._chat = chat
        # All requests have the same query tokens, so they share the memory.
        memory = SharedArray()
        self._query_rows = QueryRows(memory, memory.write(self.format.query_rows))

    def track(
        self, events: AsyncGenerator[Event, None], is_spoken: bool
    ) -> AsyncGenerator[Event, None]:
        """Return the events of an answer to which images give way, if they share its device."""
        return self.first_outputs.track(events, is_spoken) if self._rests else events

    def create_pipeline(
        self,
        media: MediaEngines,
        admission: AdmissionController,
        admit: Admit,
        context_length: int,
    ) -> ImagePipeline:
        """Return the pipeline of requests for images.

        Args:
            media: Loads and encodes images to edit.
            admission: Admits images to this engine.
            admit: Admits a chat, here the prompt of an image.
            context_length: The thinker's context, in tokens.
        """

        @asynccontextmanager
        async def admit_thinker(request: ChatRequest) -> AsyncIterator[Engine]:
            async with admit(request) as engines:
                yield engines.thinker

        @asynccontextmanager
        async def admit_image(request: ImageRequest) -> AsyncIterator[Engine]:
            async with admission.admit_image(request):
                with self.pool.pin_replica() as engine:
                    yield engine

        return ImagePipeline(
            media.preprocessor,
            admit_thinker,
            admit_image,
            self._chat,
            self.format,
            self._query_rows,
            context_length,
            media.decoders.memory,
        )


@dataclass(frozen=True)
class OptionalImageEngine:
    """The image engine of a server, or None.

    `model` is what to call the model, and `absence` why there may be none.
    """

    engine: ImageEngine | None
    model: str
    absence: str

    def require(self) -> ImageEngine:
        """Return the engine. Raises `ImagesUnavailable` if the server draws no images."""
        if self.engine is None:
            raise ImagesUnavailable(self.model, self.absence)
        return self.engine


def create_image_engine(
    config: Config, checkpoint: Path, family: ModelFamily, chat: ChatFormat
) -> OptionalImageEngine:
    """Return the image engine, if the server draws images. Raises `StartupError`."""
    capabilities = family.capabilities(checkpoint)
    draws = draws_images(config, capabilities)
    engine = ImageEngine(config, checkpoint, chat) if draws else None
    absence = explain_no_images(capabilities, family.drawing_model)
    return OptionalImageEngine(engine, capabilities.name, absence)
