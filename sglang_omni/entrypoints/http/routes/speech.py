"""`POST /v1/audio/speech`."""

import base64
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, get_args

from fastapi import APIRouter, Request, Response

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.http.audio_output import choose_output, require_model
from sglang_omni.entrypoints.http.errors import RESPONSES
from sglang_omni.entrypoints.http.openapi import EVENTS, examples, success
from sglang_omni.entrypoints.http.request_body.json_route import JSONRoute
from sglang_omni.entrypoints.http.request_metadata import RequestMetadata, owner_of, terms_of
from sglang_omni.entrypoints.http.responses import sse
from sglang_omni.entrypoints.http.responses.cancellable import CancellableStream, require_finished
from sglang_omni.entrypoints.http.speech_options import build_speech_request
from sglang_omni.entrypoints.work_threads import run_off_loop
from sglang_omni.media.encode import AudioFormat, OutputAudioEncoder, get_media_type
from sglang_omni.pipeline.request import AudioDelta, Event, Finished, SpeechRequest, Usage
from sglang_omni.protocol.speech import SpeechBody


def to_request(
    body: SpeechBody, backend: Backend, terms: RequestMetadata, owner: str | None
) -> SpeechRequest:
    """Translate a body. Raises `InvalidRequest`, naming the field."""
    require_model(body.model, backend)
    return build_speech_request(body.input, body, backend, terms, owner)


async def audio_bytes(
    events: AsyncGenerator[Event, None], encoder: OutputAudioEncoder
) -> AsyncGenerator[bytes, None]:
    """The pieces of the audio file, none of them empty."""
    async with aclosing(events):
        async for event in events:
            if isinstance(event, AudioDelta) and (data := await encoder.encode(event.pcm)):
                yield data
    if data := await encoder.close():
        yield data


async def speech_events(
    events: AsyncGenerator[Event, None], encoder: OutputAudioEncoder
) -> AsyncGenerator[dict[str, Any], None]:
    """The audio as OpenAI's `speech.audio.delta` objects, then `speech.audio.done`."""
    async with aclosing(events):
        async for event in events:
            if isinstance(event, AudioDelta) and (data := await encoder.encode(event.pcm)):
                yield _audio_delta(data)
            elif isinstance(event, Finished):
                if data := await encoder.close():
                    yield _audio_delta(data)
                yield {"type": "speech.audio.done", "usage": usage_json(event.usage)}


def _audio_delta(data: bytes) -> dict[str, Any]:
    return {"type": "speech.audio.delta", "audio": base64.b64encode(data).decode("ascii")}


def usage_json(usage: Usage) -> dict[str, int]:
    """Text tokens in, talker patches out."""
    return {
        "input_tokens": usage.prompt_tokens,
        "output_tokens": usage.audio_tokens,
        "total_tokens": usage.prompt_tokens + usage.audio_tokens,
    }


def reply(body: SpeechBody, backend: Backend, speech: SpeechRequest) -> Response:
    """Start speaking, in the form that the body asks for."""
    events = require_finished(backend.speak(speech))
    output = choose_output(body.response_format, body.sample_rate, backend, body.speed)
    encoder = output.encoder(streaming=True)
    if body.stream_format == "sse":
        return sse.SSEResponse(speech_events(events, encoder), output.headers)
    audio = audio_bytes(events, encoder)
    return CancellableStream(audio, get_media_type(body.response_format), output.headers)


def _examples(model: str) -> dict[str, Any]:
    speech = {"model": model, "input": "Hello! The mill stands by the river."}
    return {
        "wav": speech,
        "mp3": {**speech, "response_format": "mp3", "speed": 0.9, "seed": 7},
        "events": {**speech, "response_format": "pcm", "stream_format": "sse"},
    }


def routes(backend: Backend) -> APIRouter:
    """The speech route of `backend`."""
    router = APIRouter(tags=["audio"], route_class=JSONRoute)

    @router.post(
        "/v1/audio/speech",
        response_class=Response,
        responses=success("The audio", *map(get_media_type, get_args(AudioFormat)), EVENTS)
        | RESPONSES,
        openapi_extra=examples(**_examples(backend.model)),
    )
    async def create_speech(body: SpeechBody, request: Request) -> Response:
        """Read a text aloud, however long it is; or make music or a sound of a description.

        Every format is streamed as it is synthesised, so its header does not tell the length:
        both sizes of a `wav` header are 0xFFFFFFFF, which readers take as "until the end", and a
        `flac` header has 0 samples, FLAC's word for "unknown". `pcm` has 24 kHz unless
        `sample_rate` asks otherwise. `stream_format` "sse" sends the same file in server-sent
        events. An error after the first byte breaks the connection off, so that a file that
        arrived whole is whole. `POST /v1/audio/speech/batch` gives files with true lengths.
        """
        terms, owner = terms_of(request, body), owner_of(request)
        # A book takes a second to look through.
        speech = await run_off_loop(len(body.input), to_request, body, backend, terms, owner)
        return reply(body, backend, speech)

    return router
