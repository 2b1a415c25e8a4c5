"""Chat answers in OpenAI's form: events in, one completion or a series of chunks out."""

import base64
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from sglang_omni.api.audio import AudioOutput
from sglang_omni.media.encode import AudioEncoder
from sglang_omni.pipeline.request import (
    AudioDelta,
    Event,
    Finished,
    TextDelta,
    TranscriptDelta,
    Usage,
)

Json = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """What is known of an answer before its first event.

    `audio` is None for a text-only answer; `seed_applies_to` is None if no seed was given.
    """

    request_id: str
    model: str
    shows_text: bool
    audio: AudioOutput | None
    seed_applies_to: tuple[str, ...] | None
    include_usage: bool
    created: int = field(default_factory=lambda: int(time.time()))

    @property
    def audio_id(self) -> str:
        """Identifies the audio of this answer."""
        return f"audio-{self.request_id}"

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


def usage_json(usage: Usage) -> Json:
    """OpenAI's usage object: `completion_tokens` counts text and audio tokens together."""
    completion = usage.completion_tokens + usage.audio_tokens
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": completion,
        "total_tokens": usage.prompt_tokens + completion,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"audio_tokens": usage.audio_tokens},
    }


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _expires_at() -> int:
    """Now: the server keeps no audio for later turns."""
    return int(time.time())


async def complete(events: AsyncGenerator[Event, None], answer: Answer) -> Json:
    """The `chat.completion` object, once every event is there; `Finished` must be the last."""
    encoder = answer.audio.encoder(streaming=False) if answer.audio else None
    received: list[Event] = []
    async with aclosing(events):
        async for event in events:
            if isinstance(event, AudioDelta) and encoder:
                encoder.push(event.pcm)
            else:
                received.append(event)
    finished = received[-1]
    assert isinstance(finished, Finished)
    text = _joined(received, TextDelta) if answer.shows_text else None
    message: Json = {"role": "assistant", "content": text}
    if encoder:
        message["audio"] = _message_audio(answer, encoder, _joined(received, TranscriptDelta))
    choice = {"index": 0, "message": message, "finish_reason": finished.reason}
    return {
        **answer.frame("chat.completion"),
        "choices": [choice],
        "usage": usage_json(finished.usage),
        **answer.seed_note(),
    }


def _joined(events: list[Event], kind: type[TextDelta] | type[TranscriptDelta]) -> str:
    return "".join(event.text for event in events if isinstance(event, kind))


def _message_audio(answer: Answer, encoder: AudioEncoder, transcript: str) -> Json:
    return {
        "id": answer.audio_id,
        "data": _base64(encoder.finish()),
        "transcript": transcript,
        "expires_at": _expires_at(),
    }


async def chunks(events: AsyncGenerator[Event, None], answer: Answer) -> AsyncGenerator[Json, None]:
    """The `chat.completion.chunk` objects, each as soon as its event is there."""
    writer = ChunkWriter(answer)
    async with aclosing(events):
        async for event in events:
            for chunk in writer.write(event):
                yield chunk


class ChunkWriter:
    """Turns the events of one streamed answer into chunks.

    The opening chunks (role, audio id) go out with the first event: until then nothing is sent,
    so an early error can be an HTTP status.
    """

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._encoder = answer.audio.encoder(streaming=True) if answer.audio else None
        self._opened = False

    def write(self, event: Event) -> list[Json]:
        """The chunks that `event` gives rise to, possibly none."""
        opening = [] if self._opened else self._opening()
        self._opened = True
        match event:
            case TextDelta(text) if text and self._answer.shows_text:
                return [*opening, self._delta({"content": text})]
            case TranscriptDelta(text) if text and self._encoder:
                return [*opening, self._audio(transcript=text)]
            case AudioDelta(pcm) if self._encoder:
                return [*opening, *self._data(self._encoder.push(pcm))]
            case Finished():
                return [*opening, *self._closing(event)]
        return opening

    def _opening(self) -> list[Json]:
        role = {"role": "assistant", **({"content": ""} if self._answer.shows_text else {})}
        first = {**self._delta(role), **self._answer.seed_note()}
        return [first, self._audio()] if self._encoder else [first]

    def _closing(self, finished: Finished) -> list[Json]:
        closing = [self._delta({}, finished.reason)]
        if self._encoder:
            rest = self._data(self._encoder.finish())
            closing = [*rest, self._audio(expires_at=_expires_at()), *closing]
        if self._answer.include_usage:
            closing.append(self._chunk([], usage_json(finished.usage)))
        return closing

    def _data(self, data: bytes) -> list[Json]:
        return [self._audio(data=_base64(data))] if data else []

    def _audio(self, **fields: Any) -> Json:
        return self._delta({"audio": {"id": self._answer.audio_id, **fields}})

    def _delta(self, delta: Json, finish_reason: str | None = None) -> Json:
        return self._chunk([{"index": 0, "delta": delta, "finish_reason": finish_reason}])

    def _chunk(self, choices: list[Json], usage: Json | None = None) -> Json:
        # With include_usage every chunk has the field; it is null in all but the last.
        note = {"usage": usage} if self._answer.include_usage else {}
        return {**self._answer.frame("chat.completion.chunk"), "choices": choices, **note}
