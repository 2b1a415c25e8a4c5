"""What a server keeps for later requests of its clients."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sglang_omni.config.image_options import ImageOptions
from sglang_omni.entrypoints.http.audio_transcript_cache import (
    AudioTranscriptCache,
    MemoryAudioTranscriptCache,
)
from sglang_omni.entrypoints.http.image_store import ImageStore, MemoryImageStore
from sglang_omni.entrypoints.http.response_store import MemoryResponseStore, ResponseStore

Json = dict[str, Any]


def _describe_nothing() -> Json:
    return {}


@dataclass(frozen=True)
class StateStores:
    """The stores of a server's state.

    Attributes:
        responses: Model responses.
        transcripts: Transcripts of spoken answers.
        images: Drawn images that are fetched by URL.
        describe: Returns the state of a store that servers share, as a field of `/health`; no
            field if each server keeps its own.
    """

    responses: ResponseStore
    transcripts: AudioTranscriptCache
    images: ImageStore
    describe: Callable[[], Json] = _describe_nothing


def build_memory_stores(options: ImageOptions) -> StateStores:
    """Return stores in the memory of this process. Take the bounds of images from `options`."""
    return StateStores(
        MemoryResponseStore(),
        MemoryAudioTranscriptCache(),
        MemoryImageStore(options.url_bytes, options.url_seconds),
    )
