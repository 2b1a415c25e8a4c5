"""OpenAI's chat completion objects, made from the events of the pipeline."""

import base64
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from sglang_omni.entrypoints.http.audio_output import AudioOutputChoice
from sglang_omni.entrypoints.http.audio_transcript_cache import LIFETIME_S
from sglang_omni.entrypoints.http.responses.image_files import (
    FileEvent,
    FileEvents,
    FinishedFile,
    PreviewFile,
)
from sglang_omni.entrypoints.http.responses.sse import encode_json
from sglang_omni.entrypoints.http.responses.token_logprobs import build_logprobs
from sglang_omni.entrypoints.notices import build_notice
from sglang_omni.entrypoints.requests.token_text import TokenText
from sglang_omni.pipeline.async_streams import gather_or_cancel
from sglang_omni.pipeline.request import (
    AudioDelta,
    Finished,
    ReasoningDelta,
    TextDelta,
    ToolCalled,
    TranscriptDelta,
    UnspokenText,
    Usage,
)
from sglang_omni.pipeline.work_threads import run_off_loop
from sglang_omni.protocol.tools import build_tool_call

Json = dict[str, Any]
Choices = Sequence[FileEvents]
Remember = Callable[[str, str], Awaitable[bool]]
"""Keeps the transcript of an audio by its id, and returns whether it was kept."""


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
        remember: Called with the id and the transcript of each choice's audio.
        token_text: Returns the text of a token; None if no log probabilities were requested.
        created: Unix time of the answer in seconds.
    """

    request_id: str
    model: str
    shows_text: bool
    audio: AudioOutputChoice | None
    seed_applies_to: tuple[str, ...] | None
    include_usage: bool
    remember: Remember
    token_text: TokenText | None = None
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
        image_tokens=sum(usage.image_tokens for usage in usages),
    )


def build_usage(usage: Usage) -> Json:
    """Return OpenAI's usage object. `completion_tokens` are those of text, audio and images."""
    completion_tokens = usage.completion_tokens + usage.audio_tokens + usage.image_tokens
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
            **({"image_tokens": usage.image_tokens} if usage.image_tokens else {}),
        },
    }


def build_invalid_calls(finished: Finished) -> Json:
    """Return the field with the number of invalid tool calls, which are left out of the answer.

    With `finish_reason` "length", the last one was cut off by the token limit.
    """
    return {"invalid_tool_calls": finished.invalid_calls} if finished.invalid_calls else {}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


async def remember_audio(answer: Answer, index: int, transcript: str) -> int:
    """Keep the transcript of a choice's audio.

    Return the Unix time in seconds until which a later message may refer to the audio's id. If the
    transcript could not be kept, it is now.
    """
    is_kept = await answer.remember(answer.make_audio_id(index), transcript)
    return int(time.time()) + (LIFETIME_S if is_kept else 0)


async def build_completion(choices: Choices, answer: Answer) -> Json:
    """Return the `chat.completion` object. The last event of each choice must be `Finished`."""
    results = await gather_or_cancel(
        _build_choice(events, answer, index) for index, events in enumerate(choices)
    )
    return {
        **answer.build_header("chat.completion"),
        "choices": [result.choice for result in results],
        "usage": build_usage(sum_usage([result.usage for result in results])),
        **answer.build_seed_scope(),
        **build_notices(notice for result in results for notice in result.notices),
    }


def build_chat_notice(event: UnspokenText, index: int) -> Json:
    """Return a notice of a choice."""
    return {**build_notice(event), "choice_index": index}


def build_notices(notices: Iterable[Json]) -> Json:
    """Return the field `notices`, or no field if there are none."""
    found = list(notices)
    return {"notices": found} if found else {}


@dataclass(frozen=True)
class _Result:
    """A complete choice, its usage and its notices."""

    choice: Json
    usage: Usage
    notices: list[Json]


async def _build_choice(events: FileEvents, answer: Answer, index: int) -> _Result:
    encoder = answer.audio.make_encoder(streaming=False) if answer.audio else None
    received: list[FileEvent] = []
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
        message["audio"] = await _build_audio(answer, index, await encoder.close(), transcript)
    reason = finished.choose_reason("tool_calls" in message)
    text_deltas = [event for event in received if isinstance(event, TextDelta)]
    choice = {"index": index, "message": message, **answer.build_logprobs(text_deltas)}
    choice |= build_invalid_calls(finished)
    unspoken = (event for event in received if isinstance(event, UnspokenText))
    notices = [build_chat_notice(event, index) for event in unspoken] if encoder else []
    return _Result({**choice, "finish_reason": reason}, finished.usage, notices)


def _build_message(received: list[FileEvent], answer: Answer) -> Json:
    text = _join_text(received, TextDelta) if answer.shows_text else None
    calls = [build_tool_call(event.call) for event in received if isinstance(event, ToolCalled)]
    # If the model called a function, even with an invalid call, an empty text is null.
    has_called = bool(calls) or any(isinstance(e, Finished) and e.invalid_calls for e in received)
    message: Json = {"role": "assistant", "content": None if has_called and not text else text}
    if calls:
        message["tool_calls"] = calls
    if reasoning := _join_text(received, ReasoningDelta):
        message["reasoning_content"] = reasoning
    if images := [event for event in received if isinstance(event, FinishedFile)]:
        message["images"] = [build_image(image) for image in images]
    return message


def build_image(image: FinishedFile | PreviewFile) -> Json:
    """Return an image in the form that gateways have for it.

    Clients that put a stream together need the index. It is 0 for the image of an answer, and
    counts the previews, so that none is taken for a part of another one.
    """
    if isinstance(image, PreviewFile):
        index, seed = image.number, {}
    else:
        index, seed = 0, {"seed": image.seed}
    source = {"type": "image_url", "index": index, "image_url": {"url": image.url}}
    return {**source, "size": image.description["size"], **seed}


async def encode_completion(completion: Json) -> bytes:
    """Return a completion as JSON. One with images would hold up the event loop."""
    images = (
        image["image_url"]["url"]
        for choice in completion["choices"]
        for image in choice["message"].get("images", ())
    )
    return await run_off_loop(sum(map(len, images)), encode_json, completion)


def _join_text(
    events: list[FileEvent],
    event_type: type[TextDelta] | type[TranscriptDelta] | type[ReasoningDelta],
) -> str:
    return "".join(event.text for event in events if isinstance(event, event_type))


async def _build_audio(answer: Answer, index: int, data: bytes, transcript: str) -> Json:
    return {
        "id": answer.make_audio_id(index),
        "data": _base64(data),
        "transcript": transcript,
        "expires_at": await remember_audio(answer, index, transcript),
    }
