"""The route `POST /v1/audio/speech`."""

import base64
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, get_args

from fastapi import APIRouter, Request, Response

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.http.audio_output import choose_output
from sglang_omni.entrypoints.http.errors import RESPONSES
from sglang_omni.entrypoints.http.openapi import EVENT_STREAM, document_examples, document_success
from sglang_omni.entrypoints.http.request_body.json_route import JSONRoute
from sglang_omni.entrypoints.http.request_metadata import build_request_metadata, get_owner
from sglang_omni.entrypoints.http.responses import sse
from sglang_omni.entrypoints.http.responses.cancellable import CancellableStream
from sglang_omni.entrypoints.requests.metadata import RequestMetadata, require_model
from sglang_omni.entrypoints.requests.speech import build_speech_request
from sglang_omni.media.encode import OutputAudioEncoder, get_media_type
from sglang_omni.pipeline.completeness import require_finished
from sglang_omni.pipeline.request import AudioDelta, Event, Finished, SpeechRequest, Usage
from sglang_omni.pipeline.work_threads import run_off_loop
from sglang_omni.protocol.audio import AudioFormat
from sglang_omni.protocol.speech import SpeechBody


def to_speech_request(
    body: SpeechBody, backend: Backend, metadata: RequestMetadata, owner: str | None
) -> SpeechRequest:
    """Convert a body to a request of the pipeline. Raises `InvalidRequest`, naming the field."""
    require_model(body.model, backend)
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
    events: AsyncGenerator[Event, None], encoder: OutputAudioEncoder
) -> AsyncGenerator[dict[str, Any], None]:
    """Yield OpenAI's `speech.audio.delta` objects, then `speech.audio.done`."""
    async with aclosing(events):
        async for event in events:
            if isinstance(event, AudioDelta) and (data := await encoder.encode(event.pcm)):
                yield _build_audio_delta(data)
            elif isinstance(event, Finished):
                if data := await encoder.close():
                    yield _build_audio_delta(data)
                yield {"type": "speech.audio.done", "usage": build_usage(event.usage)}


def _build_audio_delta(data: bytes) -> dict[str, Any]:
    return {"type": "speech.audio.delta", "audio": base64.b64encode(data).decode("ascii")}


def build_usage(usage: Usage) -> dict[str, int]:
    """Return the usage object. Input tokens are text tokens, output tokens are talker patches."""
    return {
        "input_tokens": usage.prompt_tokens,
        "output_tokens": usage.audio_tokens,
        "total_tokens": usage.prompt_tokens + usage.audio_tokens,
    }


def start_response(body: SpeechBody, backend: Backend, speech: SpeechRequest) -> Response:
    """Start the speech, and return the response in the requested format."""
    events = require_finished(backend.speak(speech))
    output = choose_output(body.response_format, body.sample_rate, backend, body.speed)
    encoder = output.make_encoder(streaming=True)
    if body.stream_format == "sse":
        return sse.SSEResponse(stream_speech_events(events, encoder), output.headers)
    audio = stream_audio(events, encoder)
    return CancellableStream(audio, get_media_type(body.response_format), output.headers)


def _build_examples(model: str) -> dict[str, Any]:
    speech = {"model": model, "input": "Hello! The mill stands by the river."}
    return {
        "wav": speech,
        "mp3": {**speech, "response_format": "mp3", "speed": 0.9, "seed": 7},
        "events": {**speech, "response_format": "pcm", "stream_format": "sse"},
    }


def create_router(backend: Backend) -> APIRouter:
    """Return the speech route of `backend`."""
    router = APIRouter(tags=["audio"], route_class=JSONRoute)

    @router.post(
        "/v1/audio/speech",
        response_class=Response,
        responses=document_success(
            "The audio", *map(get_media_type, get_args(AudioFormat)), EVENT_STREAM
        )
        | RESPONSES,
        openapi_extra=document_examples(**_build_examples(backend.model)),
    )
    async def create_speech(body: SpeechBody, request: Request) -> Response:
        """Read a text of any length aloud, or make music or a sound from a description.

        Every format is streamed during synthesis, so its header does not contain the length: both
        sizes in a `wav` header are 0xFFFFFFFF, which readers take as "until the end", and a `flac`
        header has 0 samples, which means "unknown". `pcm` has 24 kHz unless `sample_rate` is set.
        `stream_format` "sse" sends the same file in server-sent events. An error after the first
        byte aborts the connection, so a response that ends normally is complete.
        `POST /v1/audio/speech/batch` returns files with correct lengths.
        """
        metadata, owner = build_request_metadata(request, body), get_owner(request)
        # Checking the text of a whole book takes a second.
        speech = await run_off_loop(
            len(body.input), to_speech_request, body, backend, metadata, owner
        )
        return start_response(body, backend, speech)

    return router
