"""What the API needs from the server behind it."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Protocol

from prometheus_client import CollectorRegistry

from sglang_omni.config.options import RealtimeOptions
from sglang_omni.models.capabilities import Capabilities
from sglang_omni.models.speech_text import SpeechText
from sglang_omni.pipeline.request import ChatRequest, Event, SpeechRequest
from sglang_omni.voices.registry import VoiceRegistry


class Backend(Protocol):
    """The pipeline and its engines, as the routes see them.

    `respond` and `speak` give generators, not mere iterators: closing one aborts its work at
    once, and the routes close every generator they start. The last event is `Finished`; an error
    is raised, as one of `sglang_omni.protocol.errors` where the caller should learn the reason.
    """

    @property
    def model(self) -> str:
        """The served model name."""

    @property
    def capabilities(self) -> Capabilities:
        """What the checkpoint can do."""

    @property
    def default_system(self) -> str:
        """Return the system message of a chat that brings none."""

    @property
    def speech_text(self) -> SpeechText:
        """Return the text front end and styles of the model."""

    @property
    def frame_s(self) -> float:
        """Return the seconds of speech in one audio token."""

    @property
    def sample_rate(self) -> int:
        """Rate of every `AudioDelta`, in Hz."""

    @property
    def voices(self) -> tuple[str, ...]:
        """Names of the preset voices."""

    @property
    def voice_aliases(self) -> Mapping[str, str]:
        """Second names of preset voices, and the presets that they stand for."""

    @property
    def voice_registry(self) -> VoiceRegistry:
        """The voices that users bring."""

    @property
    def has_speaker_encoder(self) -> bool:
        """Whether a voice has a speaker vector, beside what its recording sounds like."""

    @property
    def default_voice(self) -> str:
        """The preset that speaks when a request names none."""

    @property
    def deterministic_text(self) -> bool:
        """Whether `seed` fixes sampled text as well as audio."""

    @property
    def max_tokens(self) -> int:
        """The most tokens one answer may have."""

    @property
    def context_length(self) -> int:
        """Tokens of the longest prompt and its answer together."""

    @property
    def max_body_bytes(self) -> int:
        """The largest body of a request."""

    @property
    def draining(self) -> asyncio.Event:
        """Set once the server begins nothing new: what has no natural end, such as a realtime
        session, should come to one."""

    @property
    def realtime(self) -> RealtimeOptions:
        """Bounds of realtime sessions."""

    @property
    def ready(self) -> bool:
        """Whether every engine is loaded and warm, one replica of it at least."""

    @property
    def registries(self) -> Sequence[CollectorRegistry]:
        """Metrics besides ours and the engines' counters: SGLang's own."""

    @property
    def has_grammars(self) -> bool:
        """Whether an answer can be held to a JSON schema."""

    @property
    def supports_grammar(self) -> bool:
        """Whether an answer can be held to a grammar: to calls, or to a schema among others."""

    def decode_token(self, token_id: int) -> tuple[str, bytes]:
        """A token's name, and the bytes it adds to a text, none for a special one."""

    def engines(self) -> dict[str, dict[str, Any]]:
        """State and counters of each engine, by name."""

    def profile(self, engine: str, name: str | None) -> str:
        """Have an engine profiled into a folder of that name, whose path is returned; None ends it.

        Raises `RequestNotFound` for an unknown engine, `Forbidden` where no profiles are taken."""

    def respond(self, request: ChatRequest) -> AsyncGenerator[Event, None]:
        """Answer a chat."""

    def speak(self, request: SpeechRequest) -> AsyncGenerator[Event, None]:
        """Read a text aloud."""

    def stream_speech(
        self, request: SpeechRequest, text: AsyncGenerator[str, None]
    ) -> AsyncGenerator[Event, None]:
        """Read a text aloud while it is written, in place of the request's own."""
