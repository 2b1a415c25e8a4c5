"""OpenAI's chat completion objects and chunks, made from the events of the pipeline."""

import base64
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from sglang_omni.entrypoints.http.audio_output import AudioOutputChoice
from sglang_omni.entrypoints.http.audio_transcript_cache import LIFETIME_S
from sglang_omni.entrypoints.http.responses.json_template import JsonTemplate
from sglang_omni.entrypoints.http.responses.sse import Data
from sglang_omni.entrypoints.http.responses.token_logprobs import TokenText, build_logprobs
from sglang_omni.pipeline.async_streams import gather_or_cancel, merge
from sglang_omni.pipeline.request import (
    AudioDelta,
    Event,
    Finished,
    ReasoningDelta,
    TextDelta,
    ToolCalled,
    TranscriptDelta,
    Usage,
)
from sglang_omni.protocol.tools import ToolCall, build_tool_call

Json = dict[str, Any]
Choices = Sequence[AsyncGenerator[Event, None]]


def _noop(audio_id: str, transcript: str) -> None:
    """Do not remember the transcript."""


@dataclass(frozen=True)
class Answer:
    """The properties of an answer that are known before its first event.

    Attributes:
        request_id: Id of the request.
        model: Served model name.
        shows_text: Whether the answer contains text.
        audio: Format of the audio; None for an answer without audio.
        seed_applies_to: What a given `seed` fixes; None if the request has no seed.
        include_usage: Whether a streamed answer ends with its usage.
        token_text: Returns the text of a token; None if no log probabilities were requested.
        remember: Called with the id and the transcript of each choice's audio.
        created: Unix time of the answer in seconds.
    """

    request_id: str
    model: str
    shows_text: bool
    audio: AudioOutputChoice | None
    seed_applies_to: tuple[str, ...] | None
    include_usage: bool
    token_text: TokenText | None = None
    remember: Callable[[str, str], None] = _noop
    created: int = field(default_factory=lambda: int(time.time()))

    def make_audio_id(self, index: int) -> str:
        """Return the id of a choice's audio."""
        return f"audio-{self.request_id}" + (f"-{index}" if index else "")

    def build_header(self, object_type: str) -> Json:
        """Return the fields that are common to all objects of the answer."""
        return {
            "id": f"chatcmpl-{self.request_id}",
            "object": object_type,
            "created": self.created,
            "model": self.model,
        }

    def build_seed_scope(self) -> Json:
        """Return the field that says what `seed` fixes, such as `["text", "audio"]`."""
        return {} if self.seed_applies_to is None else {"seed_applies_to": [*self.seed_applies_to]}

    def build_logprobs(self, deltas: Sequence[TextDelta]) -> Json:
        """Return the `logprobs` field of a choice, or no field if they were not requested."""
        if self.token_text is None:
            return {}
        tokens = (token for delta in deltas for token in delta.logprobs)
        return {"logprobs": build_logprobs(tokens, self.token_text)}


def sum_usage(usages: Sequence[Usage]) -> Usage:
    """Return the usage of all choices of a request. They share one prompt, which counts once."""
    return replace(
        usages[0],
        completion_tokens=sum(usage.completion_tokens for usage in usages),
        audio_tokens=sum(usage.audio_tokens for usage in usages),
        reasoning_tokens=sum(usage.reasoning_tokens for usage in usages),
    )


def build_usage(usage: Usage) -> Json:
    """Return OpenAI's usage object. `completion_tokens` is the sum of text and audio tokens."""
    completion_tokens = usage.completion_tokens + usage.audio_tokens
    audio_tokens, image_tokens = usage.prompt_audio_tokens, usage.prompt_image_tokens
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": usage.prompt_tokens + completion_tokens,
        "prompt_tokens_details": {
            "cached_tokens": usage.cached_tokens,
            "text_tokens": usage.prompt_tokens - audio_tokens - image_tokens,
            "audio_tokens": audio_tokens,
            "image_tokens": image_tokens,
        },
        "completion_tokens_details": {
            "text_tokens": usage.completion_tokens,
            "audio_tokens": usage.audio_tokens,
            "reasoning_tokens": usage.reasoning_tokens,
        },
    }


def build_invalid_calls(finished: Finished) -> Json:
    """Return the field with the number of invalid tool calls, which are left out of the answer.

    With `finish_reason` "length", the last one was cut off by the token limit.
    """
    return {"invalid_tool_calls": finished.invalid_calls} if finished.invalid_calls else {}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _compute_expiry() -> int:
    """Return the Unix time in seconds until which a later message may refer to an audio id."""
    return int(time.time()) + LIFETIME_S


async def build_completion(choices: Choices, answer: Answer) -> Json:
    """Return the `chat.completion` object. The last event of each choice must be `Finished`."""
    results = await gather_or_cancel(
        _build_choice(events, answer, index) for index, events in enumerate(choices)
    )
    return {
        **answer.build_header("chat.completion"),
        "choices": [choice for choice, _ in results],
        "usage": build_usage(sum_usage([usage for _, usage in results])),
        **answer.build_seed_scope(),
    }


async def _build_choice(
    events: AsyncGenerator[Event, None], answer: Answer, index: int
) -> tuple[Json, Usage]:
    encoder = answer.audio.make_encoder(streaming=False) if answer.audio else None
    received: list[Event] = []
    async with aclosing(events):
        async for event in events:
            if isinstance(event, AudioDelta) and encoder:
                await encoder.encode(event.pcm)
            else:
                received.append(event)
    finished = received[-1]
    assert isinstance(finished, Finished)
    message = _build_message(received, answer)
    if encoder:
        transcript = _join_text(received, TranscriptDelta)
        message["audio"] = _build_audio(answer, index, await encoder.close(), transcript)
    reason = finished.choose_reason("tool_calls" in message)
    text_deltas = [event for event in received if isinstance(event, TextDelta)]
    choice = {"index": index, "message": message, **answer.build_logprobs(text_deltas)}
    choice |= build_invalid_calls(finished)
    return {**choice, "finish_reason": reason}, finished.usage


def _build_message(received: list[Event], answer: Answer) -> Json:
    text = _join_text(received, TextDelta) if answer.shows_text else None
    calls = [build_tool_call(event.call) for event in received if isinstance(event, ToolCalled)]
    # If the model called a function, even with an invalid call, an empty text is null.
    has_called = bool(calls) or any(isinstance(e, Finished) and e.invalid_calls for e in received)
    message: Json = {"role": "assistant", "content": None if has_called and not text else text}
    if calls:
        message["tool_calls"] = calls
    if reasoning := _join_text(received, ReasoningDelta):
        message["reasoning_content"] = reasoning
    return message


def _join_text(
    events: list[Event], event_type: type[TextDelta] | type[TranscriptDelta] | type[ReasoningDelta]
) -> str:
    return "".join(event.text for event in events if isinstance(event, event_type))


def _build_audio(answer: Answer, index: int, data: bytes, transcript: str) -> Json:
    answer.remember(answer.make_audio_id(index), transcript)
    return {
        "id": answer.make_audio_id(index),
        "data": _base64(data),
        "transcript": transcript,
        "expires_at": _compute_expiry(),
    }


async def stream_chunks(choices: Choices, answer: Answer) -> AsyncGenerator[Data, None]:
    """Yield the `chat.completion.chunk` objects, each as soon as its event arrives."""
    writers = [ChunkWriter(answer, index) for index in range(len(choices))]
    usages: list[Usage] = []
    sources = [_number_events(index, events) for index, events in enumerate(choices)]
    events = sources[0] if len(sources) == 1 else merge(*sources)
    async with aclosing(events):
        async for index, event in events:
            for chunk in await writers[index].write(event):
                yield chunk
            if isinstance(event, Finished):
                usages.append(event.usage)
    if answer.include_usage:
        header = answer.build_header("chat.completion.chunk")
        yield {**header, "choices": [], "usage": build_usage(sum_usage(usages))}


async def _number_events(
    index: int, events: AsyncGenerator[Event, None]
) -> AsyncGenerator[tuple[int, Event], None]:
    async with aclosing(events):
        async for event in events:
            yield index, event


class ChunkWriter:
    """Converter of the events of one streamed choice to chunks.

    The opening chunks (role, audio id) are written with the first event. Until then nothing is
    sent, so that an early error can still set the HTTP status.
    """

    def __init__(self, answer: Answer, index: int = 0) -> None:
        self._answer, self._index = answer, index
        self._encoder = answer.audio.make_encoder(streaming=True) if answer.audio else None
        self._is_opened = False
        self._num_calls = 0
        self._transcripts: list[str] = []
        self._text_template = JsonTemplate(lambda text: self._build_chunk({"content": text}))
        self._audio_template = JsonTemplate(lambda data: self._build_audio_chunk(data=data))

    async def write(self, event: Event) -> list[Data]:
        """Return the chunks of `event`, possibly none."""
        opening = [] if self._is_opened else self._build_opening()
        self._is_opened = True
        match event:
            case TextDelta(text, logprobs) if (text or logprobs) and self._answer.shows_text:
                if self._answer.token_text is None:
                    return [*opening, self._text_template.fill(text)]
                logprobs_field = self._answer.build_logprobs([event])
                return [*opening, self._build_chunk({"content": text}, **logprobs_field)]
            case ReasoningDelta(text) if self._answer.shows_text:
                return [*opening, self._build_chunk({"reasoning_content": text})]
            case ToolCalled(call):
                return [*opening, self._build_call(call)]
            case TranscriptDelta(text) if text and self._encoder:
                self._transcripts.append(text)
                return [*opening, self._build_audio_chunk(transcript=text)]
            case AudioDelta(pcm) if self._encoder:
                return [*opening, *self._build_audio_data(await self._encoder.encode(pcm))]
            case Finished():
                return [*opening, *await self._build_closing(event)]
        return opening

    def _build_opening(self) -> list[Data]:
        role = {"role": "assistant", **({"content": ""} if self._answer.shows_text else {})}
        first = {**self._build_chunk(role), **self._answer.build_seed_scope()}
        return [first, self._build_audio_chunk()] if self._encoder else [first]

    def _build_call(self, call: ToolCall) -> Json:
        """Return one chunk for a whole call, which is parsed only once it is complete."""
        delta = {"tool_calls": [{"index": self._num_calls, **build_tool_call(call)}]}
        self._num_calls += 1
        return self._build_chunk(delta)

    async def _build_closing(self, finished: Finished) -> list[Data]:
        reason = finished.choose_reason(self._num_calls > 0)
        closing: list[Data] = [self._build_chunk({}, reason, **build_invalid_calls(finished))]
        if self._encoder:
            transcript = "".join(self._transcripts)
            self._answer.remember(self._answer.make_audio_id(self._index), transcript)
            last_audio = self._build_audio_data(await self._encoder.close())
            expiry = self._build_audio_chunk(expires_at=_compute_expiry())
            closing = [*last_audio, expiry, *closing]
        return closing

    def _build_audio_data(self, data: bytes) -> list[Data]:
        return [self._audio_template.fill_plain(base64.b64encode(data))] if data else []

    def _build_audio_chunk(self, **fields: Any) -> Json:
        return self._build_chunk(
            {"audio": {"id": self._answer.make_audio_id(self._index), **fields}}
        )

    def _build_chunk(self, delta: Json, finish_reason: str | None = None, **fields: Any) -> Json:
        choice = {"index": self._index, "delta": delta, **fields, "finish_reason": finish_reason}
        # With include_usage every chunk has the field; it is null in all but the last.
        usage = {"usage": None} if self._answer.include_usage else {}
        return {**self._answer.build_header("chat.completion.chunk"), "choices": [choice], **usage}
