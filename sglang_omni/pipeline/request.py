"""What travels through the pipeline: requests in, events out."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from sglang_omni.engines.speech.contract import ClonedVoice, SpeechStyle
from sglang_omni.engines.thinker.contract import FinishReason, SamplingParams, TokenLogprob
from sglang_omni.media.limits import Kind
from sglang_omni.protocol.tools import TOOL_CHOICE_AUTO, Tool, ToolCall, ToolChoice, ToolResult

Role = Literal["system", "user", "assistant", "tool"]
Priority = Literal["realtime", "high", "normal", "low"]


@dataclass(frozen=True)
class TextPart:
    """One run of text inside a message."""

    text: str


@dataclass(frozen=True)
class MediaPart:
    """An image, a video or an audio clip inside a message.

    `sources` are URLs, data URIs, local paths or uploaded files: one, or the frames of a video in
    order. `field` names the request field that holds it, for error messages. `max_pixels`
    bounds an image after resizing, where that differs from the server's rule.
    """

    kind: Kind
    sources: tuple[str | bytes, ...]
    field: str
    max_pixels: int | None = None


@dataclass(frozen=True)
class Message:
    """One turn of a conversation; parts are rendered in order.

    Only an assistant's turn has calls, and only a tool's turn results.
    """

    role: Role
    content: tuple[TextPart | MediaPart | ToolCall | ToolResult, ...]


@dataclass(frozen=True)
class Reference:
    """A recording of somebody to speak like; `text` is what it says, None where unknown."""

    recording: MediaPart
    text: str | None


@dataclass(frozen=True)
class Voice:
    """Who speaks, and the seed that fixes the talker's noise.

    Without a `source`, `name` is a preset's, or empty where nobody is to speak.
    """

    name: str
    seed: int
    source: ClonedVoice | Reference | None = None


@dataclass(frozen=True)
class ChatRequest:
    """A validated chat request. `voice` is None for a text-only answer; `tools` may be called, as
    `calling` says. With `needs_speech` the answer is empty where nobody speaks in its clips.

    Requests of different `tenant` share no KV; None is a tenant, too. `priority` counts while
    others wait as well. A request that takes longer than `timeout_s` (unset: as long as the server
    allows) fails.
    """

    id: str
    messages: tuple[Message, ...]
    sampling: SamplingParams
    voice: Voice | None = None
    thinking: bool = False
    tools: tuple[Tool, ...] = ()
    calling: ToolChoice = TOOL_CHOICE_AUTO
    needs_speech: bool = False
    tenant: str | None = None
    priority: Priority = "normal"
    timeout_s: float | None = None

    @property
    def media(self) -> tuple[MediaPart, ...]:
        """The media of all messages, in reading order."""
        parts = (part for message in self.messages for part in message.content)
        return tuple(part for part in parts if isinstance(part, MediaPart))


@dataclass(frozen=True)
class SpeechRequest:
    """A validated request to read `text` aloud, at most `max_seconds` of it. A `verbatim` text is
    neither cut nor put into words: it describes sounds. The other fields are those of a chat."""

    id: str
    text: str
    voice: Voice
    manner: SpeechStyle = field(default_factory=SpeechStyle)
    max_seconds: float | None = None
    verbatim: bool = False
    tenant: str | None = None
    priority: Priority = "normal"
    timeout_s: float | None = None


@dataclass(frozen=True)
class Usage:
    """Token counts of a request.

    Of the prompt's tokens, `prompt_audio_tokens` stand for clips and `prompt_image_tokens` for
    pictures and frames. Of the completion's, `reasoning_tokens` are thoughts. `audio_tokens` are
    talker patches (320 ms each), which come on top.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    audio_tokens: int = 0
    prompt_audio_tokens: int = 0
    prompt_image_tokens: int = 0
    reasoning_tokens: int = 0


@dataclass(frozen=True)
class TextDelta:
    """New text of the answer, and the log probabilities of its tokens where they were asked for:
    a token's text may follow a little later than they do."""

    text: str
    logprobs: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True)
class ThoughtDelta:
    """New text of the reasoning before the answer; its marks are left out. Comes only where the
    request has thinking on."""

    text: str


@dataclass(frozen=True)
class ToolCalled:
    """The model calls a function. Comes only where the request has tools."""

    call: ToolCall


@dataclass(frozen=True)
class TranscriptDelta:
    """Text that the audio after this event speaks."""

    text: str


@dataclass(frozen=True)
class AudioDelta:
    """Samples to play next: mono float32, shape [samples], at the pipeline's rate. Full scale is
    [-1, 1]; what is louder is limited where it is encoded."""

    pcm: np.ndarray


@dataclass(frozen=True)
class Started:
    """The thinker has begun to answer, though nothing of it may be shown for long. The first event
    of a chat: an error before it concerns the request, one after it the answer."""


@dataclass(frozen=True)
class Finished:
    """The last event of every request that did not fail.

    `invalid_calls` counts the calls that were begun and left out, since they were cut off or were
    none.
    """

    reason: FinishReason
    usage: Usage
    invalid_calls: int = 0


Event = Started | TextDelta | ThoughtDelta | ToolCalled | TranscriptDelta | AudioDelta | Finished
