"""The route `POST /v1/audio/transcriptions`, which transcribes speech with the thinker."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.http.audio_output import require_model
from sglang_omni.entrypoints.http.errors import RESPONSES
from sglang_omni.entrypoints.http.openapi import EVENT_STREAM, document_success
from sglang_omni.entrypoints.http.request_body.form import FormBody, document_form, read_form
from sglang_omni.entrypoints.http.request_metadata import RequestMetadata, build_request_metadata
from sglang_omni.entrypoints.http.responses import sse
from sglang_omni.entrypoints.http.responses.cancellable import CancellableResponse, require_finished
from sglang_omni.media.limits import MediaLimits
from sglang_omni.pipeline.request import (
    ChatRequest,
    Event,
    Finished,
    MediaPart,
    Message,
    TextDelta,
    TextPart,
    Usage,
)
from sglang_omni.pipeline.transcribe import build_transcription_prompt, max_transcript_tokens
from sglang_omni.protocol.body import RequestPriority, Timeout
from sglang_omni.protocol.sampling import SamplingParams

FILE_FIELD = "file"


def _check_response_format(response_format: str) -> str:
    if response_format in ("verbose_json", "srt", "vtt", "diarized_json"):
        raise PydanticCustomError(
            "response_format", "this model gives no timestamps or speakers; use json or text"
        )
    return response_format


class TranscriptionForm(FormBody):
    """The text fields of a request."""

    model: str
    language: Annotated[str | None, Field(max_length=32)] = None
    prompt: Annotated[str | None, Field(max_length=2000, description="Words to expect")] = None
    response_format: Annotated[
        Literal["json", "text", "verbose_json", "srt", "vtt", "diarized_json"],
        Field(description="json or text; the others are rejected, because they need timestamps"),
        AfterValidator(_check_response_format),
    ] = "json"
    temperature: Annotated[float, Field(ge=0, le=1)] = 0.0
    max_tokens: Annotated[
        int | None, Field(ge=1, description="Maximum length of the transcript; an extension")
    ] = None
    stream: bool = False
    priority: RequestPriority = "normal"
    timeout: Timeout | None = None


def build_transcription_request(
    form: TranscriptionForm, recording: bytes, backend: Backend, metadata: RequestMetadata
) -> ChatRequest:
    """Return a chat request whose answer is the transcript.

    Raises `InvalidRequest`, naming the field.
    """
    prompt = build_transcription_prompt(backend.capabilities, form.language, form.prompt)
    audio = MediaPart("audio", (recording,), FILE_FIELD)
    limit = form.max_tokens or max_transcript_tokens(MediaLimits.audio_seconds)
    return ChatRequest(
        **vars(metadata),
        messages=(Message("user", (TextPart(prompt), audio)),),
        sampling=SamplingParams(
            max_tokens=min(limit, backend.max_tokens), temperature=form.temperature
        ),
        needs_speech=True,
    )


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
        """Transcribe a recording of up to 300 s. `stream` sends the words as server-sent events
        while they are generated. If nobody speaks, the text is empty."""
        form, recording = await read_form(request, TranscriptionForm, (FILE_FIELD,))
        require_model(form.model, backend)
        chat = build_transcription_request(
            form, recording, backend, build_request_metadata(request, form)
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
