"""The route `POST /v1/audio/speech`."""

import base64
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Any, get_args

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.http.audio_output import AudioOutputChoice, choose_output
from sglang_omni.entrypoints.http.complete_speech import (
    CompleteSpeech,
    build_usage,
    collect_speech,
)
from sglang_omni.entrypoints.http.errors import RESPONSES
from sglang_omni.entrypoints.http.openapi import EVENT_STREAM, document_examples, document_success
from sglang_omni.entrypoints.http.request_body.ignored_fields import note_ignored_fields
from sglang_omni.entrypoints.http.request_body.json_route import JSONRoute
from sglang_omni.entrypoints.http.request_metadata import build_request_metadata, get_owner
from sglang_omni.entrypoints.http.responses import sse
from sglang_omni.entrypoints.http.responses.cancellable import (
    CancellableResponse,
    CancellableStream,
)
from sglang_omni.entrypoints.requests.metadata import RequestMetadata, require_model
from sglang_omni.entrypoints.requests.speech import build_speech_request, count_characters
from sglang_omni.entrypoints.requests.speech_options import Styled, drop_unsupported_style
from sglang_omni.entrypoints.timestamps import describe_segment
from sglang_omni.media.encode import OutputAudioEncoder, get_media_type
from sglang_omni.pipeline.completeness import require_finished
from sglang_omni.pipeline.request import (
    AudioDelta,
    Event,
    Finished,
    SpeechRequest,
    TimedSegment,
)
from sglang_omni.pipeline.work_threads import run_off_loop
from sglang_omni.protocol.audio import AudioFormat
from sglang_omni.protocol.compat.speech import SPEECH_RULES
from sglang_omni.protocol.errors import InvalidRequest
from sglang_omni.protocol.speech import SpeechBody, TurnBody


def to_speech_request(
    body: SpeechBody, backend: Backend, metadata: RequestMetadata, owner: str | None
) -> SpeechRequest:
    """Convert a body to a request of the pipeline. Raises `InvalidRequest`, naming the field."""
    require_model(body.model, backend)
    check_answer_form(body)
    if body.verbose and body.timestamps is None and body.task == "speech":
        body = body.model_copy(update={"timestamps": "word"})
    return build_speech_request(body.input, body, backend, metadata, owner)


async def stream_audio(
    events: AsyncGenerator[Event, None], encoder: OutputAudioEncoder
) -> AsyncGenerator[bytes, None]:
    """Yield the audio file in non-empty chunks."""
    async with aclosing(events):
        async for event in events:
            if isinstance(event, AudioDelta) and (data := await encoder.encode(event.pcm)):
                yield data
    if data := await encoder.close():
        yield data


async def stream_speech_events(
    events: AsyncGenerator[Event, None], output: AudioOutputChoice
) -> AsyncGenerator[dict[str, Any], None]:
    """Yield OpenAI's `speech.audio.delta` objects, then `speech.audio.done`.

    A `speech.audio.timestamps` follows the audio of each segment if the request has timestamps.
    """
    encoder, num_segments = output.make_encoder(streaming=True), 0
    async with aclosing(events):
        async for event in events:
            if isinstance(event, AudioDelta) and (data := await encoder.encode(event.pcm)):
                yield _build_audio_delta(data)
            elif isinstance(event, TimedSegment):
                times = describe_segment(output.time_segment(event), num_segments)
                yield {"type": "speech.audio.timestamps", **times}
                num_segments += 1
            elif isinstance(event, Finished):
                if data := await encoder.close():
                    yield _build_audio_delta(data)
                yield {"type": "speech.audio.done", "usage": build_usage(event.usage)}


def _build_audio_delta(data: bytes) -> dict[str, Any]:
    return {"type": "speech.audio.delta", "audio": base64.b64encode(data).decode("ascii")}


def drop_ignored_style(options: Styled, backend: Backend, request: Request) -> Styled:
    """Return the options without a style that the checkpoint does not support, and note that."""
    supported = drop_unsupported_style(options, backend.capabilities)
    if supported is not options:
        path = "input." if isinstance(options, TurnBody) else ""
        note_ignored_fields(request, (f"{path}instructions",))
    return supported


def drop_ignored_turn_styles(
    spoken: str | list[TurnBody], backend: Backend, request: Request
) -> str | list[TurnBody]:
    """Return what is said without styles that the checkpoint does not support, and note that."""
    if isinstance(spoken, str):
        return spoken
    return [drop_ignored_style(turn, backend, request) for turn in spoken]


def check_answer_form(body: SpeechBody) -> None:
    """Check that the fields about the form of the answer fit each other.

    Raises `InvalidRequest`, naming the field.
    """
    is_sse = body.stream_format == "sse"
    if is_sse and (body.verbose or not body.stream):
        name = "verbose" if body.verbose else "stream"
        raise InvalidRequest(f"{name}: stream_format 'sse' sends events", param=name)
    if body.timestamps not in (None, "none") and not (is_sse or body.verbose):
        raise InvalidRequest(
            "timestamps: an audio file has none; set verbose to true, or stream_format to 'sse'",
            param="timestamps",
        )


def start_response(body: SpeechBody, backend: Backend, speech: SpeechRequest) -> Response:
    """Start the speech, and return the response in the requested form."""
    events = require_finished(backend.speak(speech))
    output = choose_output(body.response_format, body.sample_rate, backend, body.speed)
    if body.verbose or not body.stream:
        return CancellableResponse(partial(_make_complete_response, body, events, output))
    if body.stream_format == "sse":
        return sse.SSEResponse(stream_speech_events(events, output), output.headers)
    audio = stream_audio(events, output.make_encoder(streaming=True))
    return CancellableStream(audio, get_media_type(body.response_format), output.headers)


async def _make_complete_response(
    body: SpeechBody, events: AsyncGenerator[Event, None], output: AudioOutputChoice
) -> Response:
    """Return the complete file, or with `verbose` a JSON object that contains it."""
    complete = await collect_speech(events, output)
    if body.verbose:
        return await run_off_loop(len(complete.data), _describe_speech, complete)
    return Response(complete.data, 200, output.headers, get_media_type(output.format))


def _describe_speech(complete: CompleteSpeech) -> Response:
    """Return the file and its times in JSON. Encoding an hour of speech takes a second."""
    output = complete.output
    described = {"format": output.format, **complete.describe_times()}
    return JSONResponse({**complete.describe_file(), **described}, headers=output.headers)


def _build_examples(model: str) -> dict[str, Any]:
    speech = {"model": model, "input": "Hello! The mill stands by the river."}
    return {
        "wav": speech,
        "mp3": {**speech, "response_format": "mp3", "speed": 0.9, "seed": 7},
        "events": {**speech, "response_format": "pcm", "stream_format": "sse"},
        "dialogue": {
            **speech,
            "input": [{"text": "Who is there?"}, {"text": "A friend.", "voice": "default"}],
            "verbose": True,
        },
    }


class SpeechRoute(JSONRoute):
    """The route of speech."""

    field_rules = SPEECH_RULES


def create_router(backend: Backend) -> APIRouter:
    """Return the speech route of `backend`."""
    router = APIRouter(tags=["audio"], route_class=SpeechRoute)

    @router.post(
        "/v1/audio/speech",
        response_class=Response,
        responses=document_success(
            "The audio",
            *map(get_media_type, get_args(AudioFormat)),
            *("application/json", EVENT_STREAM),
        )
        | RESPONSES,
        openapi_extra=document_examples(**_build_examples(backend.model)),
    )
    async def create_speech(body: SpeechBody, request: Request) -> Response:
        """Read a text of any length aloud, or make music or a sound from a description.

        Every format is streamed during synthesis, so its header does not contain the length: both
        sizes in a `wav` header are 0xFFFFFFFF, which readers take as "until the end", and a `flac`
        header has 0 samples, which means "unknown". With `stream` false the answer is the complete
        file, with its length. `pcm` has 24 kHz unless `sample_rate` is set. `stream_format` "sse"
        sends the same file in server-sent events. An error after the first byte aborts the
        connection, so a response that ends normally is complete.

        `input` may be a list of turns, each with a `text` and a `voice`. `timestamps` tells when
        segments and words are spoken, in events or, with `verbose`, in a JSON object with the file.
        """
        body = drop_ignored_style(body, backend, request)
        spoken = drop_ignored_turn_styles(body.input, backend, request)
        body = body.model_copy(update={"input": spoken})
        metadata, owner = build_request_metadata(request, body), get_owner(request)
        # Checking the text of a whole book takes a second.
        speech = await run_off_loop(
            count_characters(body.input), to_speech_request, body, backend, metadata, owner
        )
        return start_response(body, backend, speech)

    return router
