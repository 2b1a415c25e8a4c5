"""Chat answers in OpenAI's form: events in, one completion or a series of chunks out."""

import base64
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from sglang_omni.entrypoints.http.audio_output import AudioOutputChoice
from sglang_omni.entrypoints.http.audio_transcript_cache import LIFETIME_S
from sglang_omni.entrypoints.http.responses.json_template import JsonTemplate
from sglang_omni.entrypoints.http.responses.sse import Data
from sglang_omni.entrypoints.http.responses.token_logprobs import TokenPiece, logprobs_json
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
from sglang_omni.protocol.tools import ToolCall

Json = dict[str, Any]
Choices = Sequence[AsyncGenerator[Event, None]]


def _noop(audio_id: str, transcript: str) -> None:
    """For answers that no later turn can cite."""


@dataclass(frozen=True)
class Answer:
    """What is known of an answer before its first event.

    `audio` is None for a text-only answer; `seed_applies_to` is None if no seed was given.
    `token_text` gives the text of tokens whose log probabilities are asked for. `remember` is told
    what was said in the audio of that id.
    """

    request_id: str
    model: str
    shows_text: bool
    audio: AudioOutputChoice | None
    seed_applies_to: tuple[str, ...] | None
    include_usage: bool
    token_text: TokenPiece | None = None
    remember: Callable[[str, str], None] = _noop
    created: int = field(default_factory=lambda: int(time.time()))

    def audio_id(self, index: int) -> str:
        """Identifies the audio of a choice."""
        return f"audio-{self.request_id}" + (f"-{index}" if index else "")

    def frame(self, kind: str) -> Json:
        """The fields that every object of the answer begins with."""
        return {
            "id": f"chatcmpl-{self.request_id}",
            "object": kind,
            "created": self.created,
            "model": self.model,
        }

    def seed_note(self) -> Json:
        """Says what a given `seed` fixes: `["audio"]`, `["text", "audio"]`, and so on."""
        return {} if self.seed_applies_to is None else {"seed_applies_to": [*self.seed_applies_to]}

    def logprobs(self, deltas: Sequence[TextDelta]) -> Json:
        """The `logprobs` of a choice, nothing where they were not asked for."""
        if self.token_text is None:
            return {}
        tokens = (token for delta in deltas for token in delta.logprobs)
        return {"logprobs": logprobs_json(tokens, self.token_text)}


def sum_usage(usages: Sequence[Usage]) -> Usage:
    """What the choices of one request used: its prompt is theirs together."""
    return replace(
        usages[0],
        completion_tokens=sum(usage.completion_tokens for usage in usages),
        audio_tokens=sum(usage.audio_tokens for usage in usages),
        reasoning_tokens=sum(usage.reasoning_tokens for usage in usages),
    )


def usage_json(usage: Usage) -> Json:
    """OpenAI's usage object: `completion_tokens` counts text and audio tokens together."""
    completion = usage.completion_tokens + usage.audio_tokens
    heard, seen = usage.prompt_audio_tokens, usage.prompt_image_tokens
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": completion,
        "total_tokens": usage.prompt_tokens + completion,
        "prompt_tokens_details": {
            "cached_tokens": usage.cached_tokens,
            "text_tokens": usage.prompt_tokens - heard - seen,
            "audio_tokens": heard,
            "image_tokens": seen,
        },
        "completion_tokens_details": {
            "text_tokens": usage.completion_tokens,
            "audio_tokens": usage.audio_tokens,
            "reasoning_tokens": usage.reasoning_tokens,
        },
    }


def call_json(call: ToolCall) -> Json:
    """A call under an id of its own."""
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": f"call_{secrets.token_hex(12)}", "type": "function", "function": function}


def invalid_calls_note(finished: Finished) -> Json:
    """Says how many calls the model began that are none, and are left out: `finish_reason`
    "length" then means that the last one was cut off."""
    return {"invalid_tool_calls": finished.invalid_calls} if finished.invalid_calls else {}


def _finish_reason(finished: Finished, calls: bool) -> str:
    return "tool_calls" if calls and finished.reason == "stop" else finished.reason


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _expires_at() -> int:
    """Until when a later turn may cite an answer's audio by its id: what was said in it."""
    return int(time.time()) + LIFETIME_S


async def complete(choices: Choices, answer: Answer) -> Json:
    """The `chat.completion` object, once every event is there; `Finished` must be the last."""
    numbered = enumerate(choices)
    made = await gather_or_cancel(_choice(events, answer, index) for index, events in numbered)
    return {
        **answer.frame("chat.completion"),
        "choices": [choice for choice, _ in made],
        "usage": usage_json(sum_usage([usage for _, usage in made])),
        **answer.seed_note(),
    }


async def _choice(
    events: AsyncGenerator[Event, None], answer: Answer, index: int
) -> tuple[Json, Usage]:
    encoder = answer.audio.encoder(streaming=False) if answer.audio else None
    received: list[Event] = []
    async with aclosing(events):
        async for event in events:
            if isinstance(event, AudioDelta) and encoder:
                await encoder.encode(event.pcm)
            else:
                received.append(event)
    finished = received[-1]
    assert isinstance(finished, Finished)
    message = _message(received, answer)
    if encoder:
        said = _joined(received, TranscriptDelta)
        message["audio"] = _message_audio(answer, index, await encoder.close(), said)
    reason = _finish_reason(finished, "tool_calls" in message)
    shown = [event for event in received if isinstance(event, TextDelta)]
    choice = {"index": index, "message": message, **answer.logprobs(shown)}
    choice |= invalid_calls_note(finished)
    return {**choice, "finish_reason": reason}, finished.usage


def _message(received: list[Event], answer: Answer) -> Json:
    text = _joined(received, TextDelta) if answer.shows_text else None
    calls = [call_json(event.call) for event in received if isinstance(event, ToolCalled)]
    # Not an empty answer: the model called, though perhaps in vain.
    called = bool(calls) or any(isinstance(e, Finished) and e.invalid_calls for e in received)
    message: Json = {"role": "assistant", "content": None if called and not text else text}
    if calls:
        message["tool_calls"] = calls
    if thought := _joined(received, ReasoningDelta):
        message["reasoning_content"] = thought
    return message


def _joined(
    events: list[Event], kind: type[TextDelta] | type[TranscriptDelta] | type[ReasoningDelta]
) -> str:
    return "".join(event.text for event in events if isinstance(event, kind))


def _message_audio(answer: Answer, index: int, data: bytes, transcript: str) -> Json:
    answer.remember(answer.audio_id(index), transcript)
    return {
        "id": answer.audio_id(index),
        "data": _base64(data),
        "transcript": transcript,
        "expires_at": _expires_at(),
    }


async def chunks(choices: Choices, answer: Answer) -> AsyncGenerator[Data, None]:
    """The `chat.completion.chunk` objects, each as soon as its event is there."""
    writers = [ChunkWriter(answer, index) for index in range(len(choices))]
    usages: list[Usage] = []
    sources = [_numbered(index, events) for index, events in enumerate(choices)]
    events = sources[0] if len(sources) == 1 else merge(*sources)
    async with aclosing(events):
        async for index, event in events:
            for chunk in await writers[index].write(event):
                yield chunk
            if isinstance(event, Finished):
                usages.append(event.usage)
    if answer.include_usage:
        frame = answer.frame("chat.completion.chunk")
        yield {**frame, "choices": [], "usage": usage_json(sum_usage(usages))}


async def _numbered(
    index: int, events: AsyncGenerator[Event, None]
) -> AsyncGenerator[tuple[int, Event], None]:
    async with aclosing(events):
        async for event in events:
            yield index, event


class ChunkWriter:
    """Turns the events of one streamed choice into chunks.

    The opening chunks (role, audio id) go out with the first event, which says that the thinker has
    begun: until then nothing is sent, so an early error can be an HTTP status.
    """

    def __init__(self, answer: Answer, index: int = 0) -> None:
        self._answer, self._index = answer, index
        self._encoder = answer.audio.encoder(streaming=True) if answer.audio else None
        self._opened = False
        self._calls = 0
        self._said: list[str] = []
        self._text = JsonTemplate(lambda text: self._delta({"content": text}))
        self._sound = JsonTemplate(lambda data: self._audio(data=data))

    async def write(self, event: Event) -> list[Data]:
        """The chunks that `event` gives rise to, possibly none."""
        opening = [] if self._opened else self._opening()
        self._opened = True
        match event:
            case TextDelta(text, logprobs) if (text or logprobs) and self._answer.shows_text:
                if self._answer.token_text is None:
                    return [*opening, self._text.fill(text)]
                about = self._answer.logprobs([event])
                return [*opening, self._delta({"content": text}, **about)]
            case ReasoningDelta(text) if self._answer.shows_text:
                return [*opening, self._delta({"reasoning_content": text})]
            case ToolCalled(call):
                return [*opening, self._call(call)]
            case TranscriptDelta(text) if text and self._encoder:
                self._said.append(text)
                return [*opening, self._audio(transcript=text)]
            case AudioDelta(pcm) if self._encoder:
                return [*opening, *self._data(await self._encoder.encode(pcm))]
            case Finished():
                return [*opening, *await self._closing(event)]
        return opening

    def _opening(self) -> list[Data]:
        role = {"role": "assistant", **({"content": ""} if self._answer.shows_text else {})}
        first = {**self._delta(role), **self._answer.seed_note()}
        return [first, self._audio()] if self._encoder else [first]

    def _call(self, call: ToolCall) -> Json:
        """A call as one piece: it is known to be one only when it is complete."""
        delta = {"tool_calls": [{"index": self._calls, **call_json(call)}]}
        self._calls += 1
        return self._delta(delta)

    async def _closing(self, finished: Finished) -> list[Data]:
        reason, note = _finish_reason(finished, self._calls > 0), invalid_calls_note(finished)
        closing: list[Data] = [self._delta({}, reason, **note)]
        if self._encoder:
            self._answer.remember(self._answer.audio_id(self._index), "".join(self._said))
            rest = self._data(await self._encoder.close())
            closing = [*rest, self._audio(expires_at=_expires_at()), *closing]
        return closing

    def _data(self, data: bytes) -> list[Data]:
        return [self._sound.fill_plain(base64.b64encode(data))] if data else []

    def _audio(self, **fields: Any) -> Json:
        return self._delta({"audio": {"id": self._answer.audio_id(self._index), **fields}})

    def _delta(self, delta: Json, finish_reason: str | None = None, **more: Any) -> Json:
        choice = {"index": self._index, "delta": delta, **more, "finish_reason": finish_reason}
        # With include_usage every chunk has the field; it is null in all but the last.
        note = {"usage": None} if self._answer.include_usage else {}
        return {**self._answer.frame("chat.completion.chunk"), "choices": [choice], **note}
