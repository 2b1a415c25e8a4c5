"""Holds the image engine: its processes, and what is asked of the model in the API process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from sglang_omni.admission.controller import AdmissionController
from sglang_omni.config.tree import Config
from sglang_omni.engines.runtime.pool import EnginePool
from sglang_omni.engines.runtime.process import Engine
from sglang_omni.engines.runtime.shared_array import SharedArray
from sglang_omni.models.capabilities import Capabilities
from sglang_omni.models.chat import ChatFormat
from sglang_omni.models.registry import family_of
from sglang_omni.pipeline.draw import ImagePipeline, QueryRows
from sglang_omni.pipeline.image_request import ImageRequest
from sglang_omni.pipeline.request import ChatRequest
from sglang_omni.pipeline.respond import Admit
from sglang_omni.serving.image_config import build_image_specs, draws_images
from sglang_omni.serving.media_engines import MediaEngines


class ImageEngine:
    """The replicas of the image engine (`pool`), and the model's `format` of images."""

    def __init__(self, config: Config, checkpoint: Path, chat: ChatFormat) -> None:
        """Create the engine without starting it. Raises `StartupError`."""
        self.pool = EnginePool(build_image_specs(config, checkpoint))
        self.format = family_of(checkpoint).image_format(checkpoint, chat)
        self._chat = chat
        # All requests have the same query tokens, so they share the memory.
        memory = SharedArray()
        self._query_rows = QueryRows(memory, memory.write(self.format.query_rows))

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
                yield self.pool

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


def create_image_engine(
    config: Config, checkpoint: Path, capabilities: Capabilities, chat: ChatFormat
) -> ImageEngine | None:
    """Return the image engine; None if the server draws no images. Raises `StartupError`."""
    if not draws_images(config, capabilities):
        return None
    return ImageEngine(config, checkpoint, chat)
