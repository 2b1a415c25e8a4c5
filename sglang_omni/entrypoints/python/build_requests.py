"""Conversion of the arguments of calls to requests of the pipeline.

The protocol models of the HTTP routes validate them, so errors name the same fields.
"""

import base64
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypedDict, TypeVar

import numpy as np
from pydantic import BaseModel, ValidationError

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.python.media_source import (
    MediaSource,
    encode_wav,
    read_source,
    to_media_part,
)
from sglang_omni.entrypoints.requests.chat import build_chat_request
from sglang_omni.entrypoints.requests.metadata import RequestMetadata
from sglang_omni.entrypoints.requests.speech import build_speech_request
from sglang_omni.entrypoints.requests.transcription import (
    FILE_FIELD,
    TranscriptionPlan,
    plan_transcription,
)
from sglang_omni.entrypoints.requests.validation import to_invalid_request
from sglang_omni.pipeline.request import ChatRequest, Message, SpeechRequest, TextPart
from sglang_omni.protocol.chat import ChatBody
from sglang_omni.protocol.errors import InvalidRequest
from sglang_omni.protocol.speech import SpeechBody
from sglang_omni.protocol.transcription import TranscriptionForm
from sglang_omni.protocol.unicode import check_unicode

Messages = str | Sequence[Mapping[str, Any]]
SpokenTurns = str | Sequence[Mapping[str, Any]]
Model = TypeVar("Model", bound=BaseModel)


class ChatArguments(TypedDict, total=False):
    """Options of a chat; those that are None or left out have the server's defaults.

    Attributes:
        system: The system message.
        max_tokens: Maximum length of the answer in tokens.
        temperature: Sampling temperature; 0 is greedy.
        stop: Strings that end the answer.
        tools: Functions that the model may call, as OpenAI's dictionaries.
        tool_choice: Which of them it may or must call, as OpenAI's field.
        response_format: The format of the text, as OpenAI's field.
        reasoning_effort: Whether the model reasons first, as OpenAI's field.
        voice: The voice that speaks the answer; "default" is the default voice. None: text only.
        images: Images of the last message, before its text.
        audio: Recordings of the last message, after its text.
        use_audio_in_video: Whether the sound of videos is heard; None: if the model can.
        video_fps: Frames per second to sample from a video.
        video_max_frames: Maximum number of frames to sample, if the server's is not lower.
        seed: Fixes the noise of the speech and, if the server can, the sampled text.
    """

    system: str | None
    max_tokens: int | None
    temperature: float | None
    stop: str | Sequence[str] | None
    tools: Sequence[Mapping[str, Any]] | None
    tool_choice: str | Mapping[str, Any] | None
    response_format: Mapping[str, Any] | None
    reasoning_effort: str | None
    voice: str | None
    images: Sequence[MediaSource]
    audio: Sequence[MediaSource]
    use_audio_in_video: bool | None
    video_fps: float | None
    video_max_frames: int | None
    seed: int | None


class SpeechArguments(TypedDict, total=False):
    """Options of speech; those that are None or left out have the server's defaults.

    Attributes:
        voice: The name of a preset or a stored voice.
        ref_audio: A recording of a voice to speak with, of 1 to 30 s.
        ref_text: What the recording says.
        instructions: How to speak: a style, or fields such as `emotion`.
        seed: Fixes the noise of the speech.
        speed: Factor of the tempo, 0.25 to 4; the pitch stays.
        timestamps: "segment" or "word" to collect `segments` with their times; None for neither.
    """

    voice: str | None
    ref_audio: MediaSource | None
    ref_text: str | None
    instructions: str | Mapping[str, Any] | None
    seed: int | None
    speed: float
    timestamps: Literal["none", "segment", "word"] | None


class _SpokenText(SpeechBody):
    """The body of a speech whose recording may be the bytes of a file."""

    ref_audio: str | bytes | None = None  # type: ignore[assignment]


def build_chat(
    backend: Backend,
    messages: Messages,
    *,
    system: str | None = None,
    voice: str | None = None,
    images: Sequence[MediaSource] = (),
    audio: Sequence[MediaSource] = (),
    **fields: Any,
) -> ChatRequest:
    """Return the request of a chat. Raises `InvalidRequest`, naming the field."""
    _reject_unknown(fields, ChatArguments)
    body = {"model": backend.model, "messages": _to_messages(messages), **fields}
    if voice is not None:
        body |= {"modalities": ["text", "audio"], "audio": {"voice": voice}}
    attached = [
        *(to_media_part("image", source, f"images.{n}") for n, source in enumerate(images)),
        *(to_media_part("audio", source, f"audio.{n}") for n, source in enumerate(audio)),
    ]
    parsed, metadata = _validate(ChatBody, body), _make_metadata()
    request = build_chat_request(parsed, backend, metadata, None, lambda _: None, attached)
    return request if system is None else _add_system(request, system)


def build_speech(
    backend: Backend, text: SpokenTurns, *, ref_audio: MediaSource | None = None, **fields: Any
) -> tuple[SpeechRequest, float]:
    """Return the request to speak a text or turns, and the speed. Raises `InvalidRequest`."""
    _reject_unknown(fields, SpeechArguments)
    body = {"model": backend.model, "input": _read_turns(text), **fields}
    if ref_audio is not None:
        body["ref_audio"] = read_source(ref_audio, "ref_audio")
    parsed = _validate(_SpokenText, body)
    request = build_speech_request(parsed.input, parsed, backend, _make_metadata(), None)
    return request, parsed.speed


def _read_turns(text: SpokenTurns) -> Any:
    """Return a text as it is, and turns with the sources of their recordings."""
    if isinstance(text, str) or not isinstance(text, Sequence):
        return text
    return [_read_turn(turn, index) for index, turn in enumerate(text)]


def _read_turn(turn: Any, index: int) -> Any:
    recording = turn.get("ref_audio") if isinstance(turn, Mapping) else None
    if recording is None:
        return turn
    source = read_source(recording, f"input.{index}.ref_audio")
    if isinstance(source, bytes):
        source = f"data:;base64,{base64.b64encode(source).decode('ascii')}"
    return {**turn, "ref_audio": source}


def build_transcription(
    backend: Backend,
    recording: MediaSource | np.ndarray,
    sample_rate: int | None,
    language: str | None,
    *,
    with_times: bool = False,
) -> tuple[TranscriptionPlan, bytes | str]:
    """Return how to transcribe, and the file or its URL. Raises `InvalidRequest`.

    With times, short recordings are cut at pauses as well.
    """
    if isinstance(recording, np.ndarray):
        if sample_rate is None:
            raise InvalidRequest("sample_rate: is required for an array", param="sample_rate")
        recording = encode_wav(recording, sample_rate, FILE_FIELD)
    fields: dict[str, Any] = {"model": backend.model, "language": language}
    if with_times:
        fields["chunking_strategy"] = "auto"
    form = _validate(TranscriptionForm, fields)
    plan = plan_transcription(form, backend, _make_metadata())
    return plan, read_source(recording, FILE_FIELD)


def _make_metadata() -> RequestMetadata:
    return RequestMetadata(id=f"python-{secrets.token_hex(8)}")


def _reject_unknown(fields: Mapping[str, Any], options: Any) -> None:
    """Raise `TypeError` for keyword arguments that do not exist."""
    for name in fields:
        if name not in options.__annotations__:
            raise TypeError(f"got an unexpected keyword argument {name!r}")


def _to_messages(messages: Messages) -> Any:
    return [{"role": "user", "content": messages}] if isinstance(messages, str) else messages


def _validate(model: type[Model], fields: dict[str, Any]) -> Model:
    """Return the validated body of a request. Raises `InvalidRequest`, naming the field."""
    body = _to_json_types(fields)
    check_unicode(body)
    try:
        return model.model_validate(body)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
        raise to_invalid_request(
            [{**problem, "loc": ("body", *problem["loc"])} for problem in problems]
        ) from None


def _to_json_types(value: Any) -> Any:
    """Return a value with tuples as lists and mappings as dictionaries, as JSON has them."""
    if isinstance(value, Mapping):
        return {name: _to_json_types(item) for name, item in value.items()}
    return [_to_json_types(item) for item in value] if isinstance(value, list | tuple) else value


def _add_system(request: ChatRequest, system: str) -> ChatRequest:
    """Return a request with a system message in front. Raises `InvalidRequest`."""
    if not isinstance(system, str):
        raise InvalidRequest("system: must be a string", param="system")
    check_unicode({"system": system})
    if request.messages[0].role == "system":
        raise InvalidRequest("system: the messages have a system message already", param="system")
    message = Message("system", (TextPart(system),))
    return replace(request, messages=(message, *request.messages))
