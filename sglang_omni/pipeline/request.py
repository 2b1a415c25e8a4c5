"""The pipeline's requests and the events that answer them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from sglang_omni.engines.speech.contract import ClonedVoice
from sglang_omni.engines.thinker.contract import FinishReason, TokenLogprob
from sglang_omni.media.limits import NO_VIDEO_OPTIONS, Kind, VideoOptions
from sglang_omni.models.speech_text import DEFAULT_READING, ReadingOptions, SpeechStyle
from sglang_omni.protocol.sampling import SamplingParams
from sglang_omni.protocol.speech import Timestamps
from sglang_omni.protocol.tools import (
    TOOL_CHOICE_AUTO,
    Tool,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
    ToolChoice,
    ToolResult,
)
from sglang_omni.queueing.policy import Priority

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True)
class TextPart:
    """One run of text inside a message."""

    text: str


@dataclass(frozen=True)
class MediaPart:
    """An image, a video or an audio clip inside a message.

    `sources` are URLs, data URIs, local paths or uploaded files: one, or the frames of a video in
    order. `field` names the request field that holds it, for error messages. `max_pixels` bounds
    an image after resizing; None means the server's rule. `video` are the options of a video; audio
    with a `sound` there is the sound of a video file.
    """

    kind: Kind
    sources: tuple[str | bytes, ...]
    field: str
    max_pixels: int | None = None
    video: VideoOptions = NO_VIDEO_OPTIONS


@dataclass(frozen=True)
class Message:
    """One turn of a conversation. Its parts are rendered in order.

    Only an assistant message has tool calls, and only a tool message has tool results.
    """

    role: Role
    content: tuple[TextPart | MediaPart | ToolCall | ToolResult, ...]


def list_media(messages: Iterable[Message]) -> tuple[MediaPart, ...]:
    """Return the media of messages, in order."""
    parts = (part for message in messages for part in message.content)
    return tuple(part for part in parts if isinstance(part, MediaPart))


@dataclass(frozen=True)
class Reference:
    """A recording of the voice to clone. `text` is its transcript, None if unknown."""

    recording: MediaPart
    text: str | None


@dataclass(frozen=True)
class Voice:
    """The voice that speaks, and the seed of the talker's noise.

    Without a `source`, `name` names a preset, or is empty if the speech has no voice.
    """

    name: str
    seed: int
    source: ClonedVoice | Reference | None = None


@dataclass(frozen=True)
class ChatRequest:
    """A validated chat request.

    A request with `prompt_ids` has no messages: the thinker continues these tokens as they are.
    `voice` is None for a text-only answer; `reading` says how a spoken one is read. `tools` may be
    called as `tool_choice` says. With `needs_speech` the answer is empty if no audio of the request
    contains speech. Requests of different `tenant` share no KV cache; None is also a tenant.
    `priority` orders requests that wait. A request that takes longer than `timeout_s` fails; None
    means the server's limit.
    """

    id: str
    messages: tuple[Message, ...]
    sampling: SamplingParams
    voice: Voice | None = None
    thinking: bool = False
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice = TOOL_CHOICE_AUTO
    needs_speech: bool = False
    tenant: str | None = None
    priority: Priority = "normal"
    timeout_s: float | None = None
    reading: ReadingOptions = DEFAULT_READING
    prompt_ids: tuple[int, ...] | None = None

    @property
    def media(self) -> tuple[MediaPart, ...]:
        """Return the media of all messages, in order."""
        return list_media(self.messages)


@dataclass(frozen=True)
class Pause:
    """Silence of `seconds` in front of the character at `position` of a text."""

    position: int
    seconds: float


@dataclass(frozen=True)
class SpeechTurn:
    """What one speaker says, and how.

    `pauses` are in the order of their positions. `written` says what private-use characters of the
    text stand for.
    """

    text: str
    voice: Voice
    style: SpeechStyle = field(default_factory=SpeechStyle)
    reading: ReadingOptions = DEFAULT_READING
    pauses: tuple[Pause, ...] = ()
    written: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SpeechRequest:
    """A validated request to speak `text`, for at most `max_seconds`, and then `later_turns`.

    A `verbatim` text describes sounds, so it is neither split nor normalised. `timestamps` says
    what is located in the speech. The other fields are those of `SpeechTurn` and `ChatRequest`.
    """

    id: str
    text: str
    voice: Voice
    style: SpeechStyle = field(default_factory=SpeechStyle)
    max_seconds: float | None = None
    verbatim: bool = False
    tenant: str | None = None
    priority: Priority = "normal"
    timeout_s: float | None = None
    reading: ReadingOptions = DEFAULT_READING
    pauses: tuple[Pause, ...] = ()
    written: Mapping[str, str] = field(default_factory=dict)
    later_turns: tuple[SpeechTurn, ...] = ()
    timestamps: Timestamps = "none"

    @property
    def turns(self) -> tuple[SpeechTurn, ...]:
        """Return what is said, in order; several speakers have several turns."""
        first = SpeechTurn(
            self.text, self.voice, self.style, self.reading, self.pauses, self.written
        )
        return (first, *self.later_turns)


@dataclass(frozen=True)
class Usage:
    """Token counts of a request.

    `prompt_tokens` includes `prompt_audio_tokens` and `prompt_image_tokens` (images and video).
    `completion_tokens` includes `reasoning_tokens`. `audio_tokens` are talker patches of 320 ms
    each. Neither they nor `image_tokens`, those of drawn images, are included in
    `completion_tokens`.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    audio_tokens: int = 0
    prompt_audio_tokens: int = 0
    prompt_image_tokens: int = 0
    reasoning_tokens: int = 0
    image_tokens: int = 0


@dataclass(frozen=True)
class TextDelta:
    """New text of the answer, with the log probabilities of its tokens if they were requested.

    A token's text may come in a later delta than its log probability.
    """

    text: str
    logprobs: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True)
class ReasoningDelta:
    """New text of the reasoning before the answer, without its tags."""

    text: str


@dataclass(frozen=True)
class ToolCalled:
    """The model calls a function. Only requests with tools have it.

    If a grammar holds the call to its form, `ToolCallStart` and `ToolCallDelta` came before it.
    """

    call: ToolCall


@dataclass(frozen=True)
class TranscriptDelta:
    """The text that the audio after this event speaks."""

    text: str


@dataclass(frozen=True)
class UnspokenText:
    """Words of the answer that the model cannot speak, so the audio leaves them out."""

    words: tuple[str, ...]


@dataclass(frozen=True)
class AudioDelta:
    """The next samples to play: mono float32, shape [samples], at the pipeline's sample rate.

    Full scale is [-1, 1]. Louder samples are limited when they are encoded.
    """

    pcm: np.ndarray


@dataclass(frozen=True)
class TimedWord:
    """A word as it is written, and when it is spoken, in seconds from the start of the audio."""

    text: str
    start: float
    end: float


@dataclass(frozen=True)
class TimedSegment:
    """What the latest audio speaks. Only requests with `timestamps` have it.

    Times are seconds of the audio at speed 1, from its start. `words` is empty unless words were
    requested. `voice` is the name of the speaker, None without one; `turn` counts the turns.
    """

    text: str
    start: float
    end: float
    words: tuple[TimedWord, ...] = ()
    voice: str | None = None
    turn: int = 0

    def convert_times(self, convert: Callable[[float], float]) -> "TimedSegment":
        """Return the segment with other times."""
        words = (TimedWord(one.text, convert(one.start), convert(one.end)) for one in self.words)
        start, end = convert(self.start), convert(self.end)
        return replace(self, start=start, end=end, words=tuple(words))


@dataclass(frozen=True)
class Started:
    """The thinker has produced its first token. The first event of a chat.

    The first visible output may come much later. An error before this event concerns the request;
    an error after it concerns the answer. `prompt_logprobs` has an entry for each token of the
    prompt but the first, if the request asks for them.
    """

    prompt_logprobs: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True)
class Finished:
    """The last event of every request that did not fail.

    `invalid_calls` counts tool calls that are incomplete or malformed. None of them is
    `ToolCalled`; the last may have begun with `ToolCallStart`.
    """

    reason: FinishReason
    usage: Usage
    invalid_calls: int = 0

    def choose_reason(self, has_tool_calls: bool) -> str:
        """Return OpenAI's `finish_reason` of an answer with or without tool calls."""
        return "tool_calls" if has_tool_calls and self.reason == "stop" else self.reason


Event = (
    Started
    | TextDelta
    | ReasoningDelta
    | ToolCallStart
    | ToolCallDelta
    | ToolCalled
    | TranscriptDelta
    | UnspokenText
    | AudioDelta
    | TimedSegment
    | Finished
)
