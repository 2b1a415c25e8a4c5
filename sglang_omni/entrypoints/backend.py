"""The interface between the API and the server that it exposes."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Protocol

from prometheus_client import CollectorRegistry

from sglang_omni.config.image_options import ImageOptions
from sglang_omni.config.realtime_options import RealtimeOptions
from sglang_omni.engines.runtime.shared_descriptor import SharedDescriptor
from sglang_omni.media.speech_spans import CutRules
from sglang_omni.models.capabilities import Capabilities
from sglang_omni.models.image import Size
from sglang_omni.models.speech_text import ReadingOptions, SpeechText
from sglang_omni.pipeline.image_request import ImageEvent, ImageRequest
from sglang_omni.pipeline.recording import RecordingEnd, RecordingPiece
from sglang_omni.pipeline.request import ChatRequest, Event, SpeechRequest
from sglang_omni.protocol.compat.model_names import ModelNames
from sglang_omni.voices.registry import VoiceRegistry


class Backend(Protocol):
    """The pipeline and its engines, as the routes use them.

    `respond` and `speak` return async generators. To close one aborts its work at once; the routes
    close every generator that they start. The last event is `Finished`. Errors are raised; those of
    `sglang_omni.protocol.errors` are shown to the caller.
    """

    @property
    def model(self) -> str:
        """Return the main name of the served model."""

    @property
    def model_names(self) -> ModelNames:
        """Return all names that a request may give the served model."""

    @property
    def strict_fields(self) -> bool:
        """Return whether a request with fields that would be ignored is rejected."""

    @property
    def accepts_media(self) -> bool:
        """Return whether a chat may have images, videos and audio."""

    @property
    def capabilities(self) -> Capabilities:
        """Return what the checkpoint can do."""

    @property
    def default_system(self) -> str:
        """Return the system message of a chat that brings none."""

    @property
    def speech_text(self) -> SpeechText:
        """Return the text front end and styles of the model."""

    @property
    def reading(self) -> ReadingOptions:
        """Return how text is read aloud where a request does not say."""

    @property
    def frame_s(self) -> float:
        """Return the seconds of speech in one audio token."""

    @property
    def sample_rate(self) -> int:
        """Return the sample rate of every `AudioDelta` in Hz."""

    @property
    def voices(self) -> tuple[str, ...]:
        """Return the names of the preset voices."""

    @property
    def voice_aliases(self) -> Mapping[str, str]:
        """Return the preset voice of each alias."""

    @property
    def openai_voices(self) -> Mapping[str, str]:
        """Return the preset voice that speaks for each of OpenAI's, unless another has its name."""

    @property
    def voice_registry(self) -> VoiceRegistry:
        """Return the registry of voices that users store or upload."""

    @property
    def has_speaker_encoder(self) -> bool:
        """Return whether cloned voices have a speaker vector in addition to the recording."""

    @property
    def default_voice(self) -> str:
        """Return the preset voice of requests that name none."""

    @property
    def deterministic_text(self) -> bool:
        """Return whether `seed` fixes sampled text as well as audio."""

    @property
    def max_tokens(self) -> int:
        """Return the maximum number of tokens of one answer."""

    @property
    def context_length(self) -> int:
        """Return the maximum number of tokens of a prompt and its answer together."""

    @property
    def max_body_bytes(self) -> int:
        """Return the maximum size of a request body."""

    @property
    def draining(self) -> asyncio.Event:
        """Return the event that is set once the server accepts no new work.

        Work without a natural end, such as a realtime session, should then end.
        """

    @property
    def realtime(self) -> RealtimeOptions:
        """Return the options of realtime sessions."""

    @property
    def image_options(self) -> ImageOptions:
        """Return what a request for images may ask for."""

    @property
    def ready(self) -> bool:
        """Return whether every engine has at least one loaded and warm replica."""

    @property
    def registries(self) -> Sequence[CollectorRegistry]:
        """Return the registries of SGLang's own metrics."""

    @property
    def has_grammars(self) -> bool:
        """Return whether the thinker can enforce a JSON schema."""

    @property
    def supports_grammar(self) -> bool:
        """Return whether the thinker can enforce a grammar, such as tool calls."""

    @property
    def vocabulary_size(self) -> int:
        """Return one more than the highest id of a token."""

    def encode_prompt(self, text: str) -> tuple[int, ...]:
        """Return the tokens of a prompt that is no chat; names of special tokens stand for them."""

    def tokenize(self, request: ChatRequest) -> tuple[int, ...]:
        """Return the tokens of the prompt of a chat without media. Raises `InvalidRequest`."""

    def decode_token(self, token_id: int) -> tuple[str, bytes]:
        """Return a token's name and the bytes it adds to a text, which are empty if special."""

    def engines(self) -> dict[str, dict[str, Any]]:
        """Return the state and counters of each engine, by name."""

    def profile(self, engine: str, name: str | None) -> str:
        """Start a profile of an engine, or stop it if `name` is None.

        Args:
            engine: Name of the engine.
            name: Name of the folder for the traces.

        Returns:
            The path of the folder.

        Raises:
            RequestNotFound: There is no such engine.
            Forbidden: Profiling is disabled.
        """

    def respond(self, request: ChatRequest) -> AsyncGenerator[Event, None]:
        """Answer a chat."""

    def require_images(self) -> None:
        """Raise `ImagesUnavailable`, which says why, if the server draws no images."""

    def fit_resolution(self, size: Size) -> int:
        """Return the resolution nearest to a requested size. Raises `ImagesUnavailable`."""

    def draw(self, request: ImageRequest) -> AsyncGenerator[ImageEvent, None]:
        """Draw images. The last event is `ImagesFinished`. Raises `ImagesUnavailable`."""

    def cut_recording(
        self, recording: SharedDescriptor | str, rules: CutRules, tenant: str | None, field: str
    ) -> AsyncGenerator[RecordingPiece | RecordingEnd, None]:
        """Yield the pieces of a recording in which somebody speaks, then its end.

        `recording` is a file, or the URL of one.
        `field` names the field of the request that holds it, for error messages.
        """

    def speak(self, request: SpeechRequest) -> AsyncGenerator[Event, None]:
        """Read a text aloud."""

    def stream_speech(
        self, request: SpeechRequest, text: AsyncGenerator[str, None]
    ) -> AsyncGenerator[Event, None]:
        """Read `text` aloud while it is written; the request's own text is not used."""
