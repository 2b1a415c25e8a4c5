"""The route `POST /v1/audio/transcriptions`, which transcribes speech with the thinker."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.http.errors import RESPONSES
from sglang_omni.entrypoints.http.openapi import EVENT_STREAM, document_success
from sglang_omni.entrypoints.http.request_body.form import document_form, read_form
from sglang_omni.entrypoints.http.request_metadata import build_request_metadata
from sglang_omni.entrypoints.http.responses import sse
from sglang_omni.entrypoints.http.responses.cancellable import CancellableResponse
from sglang_omni.entrypoints.requests.transcription import build_transcription_request
from sglang_omni.pipeline.completeness import require_finished
from sglang_omni.pipeline.request import (
    Event,
    Finished,
    MediaPart,
    TextDelta,
    Usage,
)
from sglang_omni.protocol.transcription import TranscriptionForm

FILE_FIELD = "file"


def build_usage(usage: Usage) -> dict[str, Any]:
    """Return OpenAI's usage object of a transcription."""
    return {
        "type": "tokens",
        "input_tokens": usage.prompt_tokens,
        "output_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "input_token_details": {
            "audio_tokens": usage.prompt_audio_tokens,
            "text_tokens": usage.prompt_tokens - usage.prompt_audio_tokens,
        },
    }


async def stream_transcript_events(
    events: AsyncGenerator[Event, None],
) -> AsyncGenerator[dict[str, Any], None]:
    """Yield OpenAI's `transcript.text.delta` objects, then `transcript.text.done`."""
    text = ""
    async with aclosing(events):
        async for event in events:
            if isinstance(event, TextDelta):
                text += event.text
                yield {"type": "transcript.text.delta", "delta": event.text}
            elif isinstance(event, Finished):
                usage = build_usage(event.usage)
                yield {"type": "transcript.text.done", "text": text.strip(), "usage": usage}


def create_router(backend: Backend) -> APIRouter:
    """Return the transcription route of `backend`."""
    router = APIRouter(tags=["audio"])

    @router.post(
        "/v1/audio/transcriptions",
        response_class=Response,
        responses=document_success("The transcript", "application/json", "text/plain", EVENT_STREAM)
        | RESPONSES,
        openapi_extra=document_form(TranscriptionForm, FILE_FIELD, {"model": backend.model}),
    )
    async def create_transcription(request: Request) -> Response:
        """Transcribe a recording of up to 300 s.

        `stream` sends the words as server-sent events while they are generated. If nobody speaks,
        the text is empty.
        """
        form, recording = await read_form(request, TranscriptionForm, (FILE_FIELD,))
        audio = MediaPart("audio", (recording,), FILE_FIELD)
        chat = build_transcription_request(
            form, audio, backend, build_request_metadata(request, form)
        )
        events = stream_transcript_events(require_finished(backend.respond(chat)))
        if form.stream:
            return sse.SSEResponse(events)

        async def make_response() -> Response:
            async with aclosing(events):
                done = [event async for event in events][-1]
            if form.response_format == "text":
                return PlainTextResponse(done["text"] + "\n")
            return JSONResponse({"text": done["text"], "usage": done["usage"]})

        return CancellableResponse(make_response)

    return router
