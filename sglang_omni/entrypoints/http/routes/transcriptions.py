"""`POST /v1/audio/transcriptions`: what is said in a recording, written down by the thinker."""

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
from sglang_omni.entrypoints.http.openapi import EVENTS, success
from sglang_omni.entrypoints.http.request_body.form import FormBody, document_form, read_form
from sglang_omni.entrypoints.http.request_metadata import RequestMetadata, terms_of
from sglang_omni.entrypoints.http.responses import sse
from sglang_omni.entrypoints.http.responses.cancellable import CancellableResponse, require_finished
from sglang_omni.media.limits import MediaLimits
from sglang_omni.pipeline.request import (
    ChatRequest,
    Event,
    Finished,
    MediaPart,
    Message,
    SamplingParams,
    TextDelta,
    TextPart,
    Usage,
)
from sglang_omni.pipeline.transcribe import build_transcription_prompt, max_transcript_tokens
from sglang_omni.protocol.body import AskedPriority, Timeout

FILE = "file"


def _honest(response_format: str) -> str:
    if response_format in ("verbose_json", "srt", "vtt", "diarized_json"):
        raise PydanticCustomError(
            "response_format", "this model tells what is said, not when or by whom: json or text"
        )
    return response_format


class TranscriptionForm(FormBody):
    """The text fields of a request."""

    model: str
    language: Annotated[str | None, Field(max_length=32)] = None
    prompt: Annotated[str | None, Field(max_length=2000, description="Words to expect")] = None
    response_format: Annotated[
        Literal["json", "text", "verbose_json", "srt", "vtt", "diarized_json"],
        Field(description="json or text; the others are refused, for they need times"),
        AfterValidator(_honest),
    ] = "json"
    temperature: Annotated[float, Field(ge=0, le=1)] = 0.0
    max_tokens: Annotated[
        int | None, Field(ge=1, description="The most that is written; an extension")
    ] = None
    stream: bool = False
    priority: AskedPriority = "normal"
    timeout: Timeout | None = None


def to_request(
    form: TranscriptionForm, recording: bytes, backend: Backend, terms: RequestMetadata
) -> ChatRequest:
    """The chat whose answer is the transcript. Raises `InvalidRequest`, naming the field."""
    prompt = build_transcription_prompt(backend.capabilities, form.language, form.prompt)
    heard = MediaPart("audio", (recording,), FILE)
    limit = form.max_tokens or max_transcript_tokens(MediaLimits.audio_seconds)
    return ChatRequest(
        **vars(terms),
        messages=(Message("user", (TextPart(prompt), heard)),),
        sampling=SamplingParams(
            max_tokens=min(limit, backend.max_tokens), temperature=form.temperature
        ),
        needs_speech=True,
    )


def usage_json(usage: Usage) -> dict[str, Any]:
    """OpenAI's count of a transcription's tokens."""
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


async def transcript_events(
    events: AsyncGenerator[Event, None],
) -> AsyncGenerator[dict[str, Any], None]:
    """OpenAI's `transcript.text.delta` objects, then `transcript.text.done`."""
    text = ""
    async with aclosing(events):
        async for event in events:
            if isinstance(event, TextDelta):
                text += event.text
                yield {"type": "transcript.text.delta", "delta": event.text}
            elif isinstance(event, Finished):
                usage = usage_json(event.usage)
                yield {"type": "transcript.text.done", "text": text.strip(), "usage": usage}


def routes(backend: Backend) -> APIRouter:
    """The transcription route of `backend`."""
    router = APIRouter(tags=["audio"])

    @router.post(
        "/v1/audio/transcriptions",
        response_class=Response,
        responses=success("What is said", "application/json", "text/plain", EVENTS) | RESPONSES,
        openapi_extra=document_form(TranscriptionForm, FILE, {"model": backend.model}),
    )
    async def create_transcription(request: Request) -> Response:
        """Write down what is said in a recording of up to 300 s; `stream` sends the words as they
        are written, as server-sent events. Where nobody speaks, the text is empty."""
        form, recording = await read_form(request, TranscriptionForm, (FILE,))
        require_model(form.model, backend)
        chat = to_request(form, recording, backend, terms_of(request, form))
        events = transcript_events(require_finished(backend.respond(chat)))
        if form.stream:
            return sse.SSEResponse(events)

        async def whole() -> Response:
            async with aclosing(events):
                done = [event async for event in events][-1]
            if form.response_format == "text":
                return PlainTextResponse(done["text"] + "\n")
            return JSONResponse({"text": done["text"], "usage": done["usage"]})

        return CancellableResponse(whole)

    return router
