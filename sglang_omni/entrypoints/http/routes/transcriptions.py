"""The routes that write down speech: `POST /v1/audio/transcriptions` and `/translations`."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from functools import partial

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse

from sglang_omni.admission.timeout import with_timeout
from sglang_omni.engines.runtime.shared_descriptor import SharedDescriptor
from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.http.errors import RESPONSES
from sglang_omni.entrypoints.http.openapi import EVENT_STREAM, document_success
from sglang_omni.entrypoints.http.request_body.form import document_form, open_form
from sglang_omni.entrypoints.http.request_body.ignored_fields import note_ignored_fields
from sglang_omni.entrypoints.http.request_metadata import build_request_metadata
from sglang_omni.entrypoints.http.responses import sse
from sglang_omni.entrypoints.http.responses import transcript as formats
from sglang_omni.entrypoints.http.responses.cancellable import CancellableResponse
from sglang_omni.entrypoints.requests.token_text import TokenText
from sglang_omni.entrypoints.requests.transcription import (
    FILE_FIELD,
    TranscriptionPlan,
    plan_transcription,
    plan_translation,
)
from sglang_omni.models.capabilities import LANGUAGE_NAMES, Capabilities
from sglang_omni.pipeline.transcribe import to_language_code
from sglang_omni.pipeline.transcript import TranscriptEvent, transcribe
from sglang_omni.protocol.compat.transcription import TRANSCRIPTION_RULES, TRANSLATION_RULES
from sglang_omni.protocol.transcription import (
    TranscriptFormat,
    TranscriptionForm,
    TranslationForm,
)

UNKNOWN_LANGUAGE = "unknown"
_ANSWER = document_success(
    "The transcript", "application/json", "text/plain", "text/vtt", EVENT_STREAM
)


def name_language(language: str | None, capabilities: Capabilities) -> str:
    """Return the name of a recording's language: the given one, or the only one of the model."""
    if language is None and len(capabilities.transcription_languages or ()) == 1:
        (language,) = capabilities.transcription_languages or ()
    if language is None:
        return UNKNOWN_LANGUAGE
    return LANGUAGE_NAMES.get(to_language_code(language), language).lower()


def start_transcription(
    plan: TranscriptionPlan, backend: Backend, recording: SharedDescriptor
) -> AsyncGenerator[TranscriptEvent, None]:
    """Return the events of a transcription, which begins when the first one is read.

    The timeout is for all pieces together.
    """
    pieces = backend.cut_recording(recording, plan.rules, plan.metadata.tenant, FILE_FIELD)
    events = transcribe(pieces, plan.build_request, backend.respond)
    timeout_s = plan.metadata.timeout_s
    return events if timeout_s is None else with_timeout(events, timeout_s)


@dataclass(frozen=True)
class TranscriptResponder:
    """Makes the answer of a route from a transcript, in the format that the form asks for.

    Attributes:
        response_format: The format.
        task: What was done: transcribe or translate.
        language: The language of the recording.
        temperature: The sampling temperature.
        token_text: Returns the text of a token; None if no log probabilities were requested.
    """

    response_format: TranscriptFormat
    task: str
    language: str
    temperature: float
    token_text: TokenText | None = None

    async def respond(self, events: AsyncGenerator[TranscriptEvent, None]) -> Response:
        """Return the response once the transcript is complete."""
        transcript = await formats.read_transcript(events)
        match self.response_format:
            case "text":
                return PlainTextResponse(transcript.text + "\n")
            case "srt":
                return PlainTextResponse(formats.build_srt(transcript))
            case "vtt":
                return PlainTextResponse(formats.build_vtt(transcript), media_type="text/vtt")
            case "json":
                return JSONResponse(formats.build_json(transcript, self.token_text))
        return JSONResponse(
            formats.build_verbose_json(transcript, self.task, self.language, self.temperature)
        )


def create_router(backend: Backend) -> APIRouter:
    """Return the transcription and translation routes of `backend`."""
    router = APIRouter(tags=["audio"])

    @router.post(
        "/v1/audio/transcriptions",
        response_class=Response,
        responses=_ANSWER | RESPONSES,
        openapi_extra=document_form(TranscriptionForm, FILE_FIELD, {"model": backend.model}),
    )
    async def create_transcription(request: Request) -> Response:
        """Transcribe a recording of up to two hours.

        A long one is cut where nobody speaks, and several pieces are transcribed at once. `stream`
        sends the words as server-sent events, in order. If nobody speaks, the text is empty.
        """
        form, recording = await open_form(
            request, TranscriptionForm, (FILE_FIELD,), TRANSCRIPTION_RULES
        )
        if form.timestamp_granularities and form.response_format != "verbose_json":
            note_ignored_fields(request, ("timestamp_granularities",))
        plan = plan_transcription(form, backend, build_request_metadata(request, form))
        events = start_transcription(plan, backend, recording)
        token_text = backend.decode_token if form.include else None
        if form.stream:
            with_segments = form.response_format == "verbose_json"
            return sse.SSEResponse(
                formats.stream_events(
                    events, form.temperature, with_segments=with_segments, token_text=token_text
                )
            )
        language = name_language(form.language, backend.capabilities)
        responder = TranscriptResponder(
            form.response_format, "transcribe", language, form.temperature, token_text
        )
        return CancellableResponse(partial(responder.respond, events))

    @router.post(
        "/v1/audio/translations",
        response_class=Response,
        responses=_ANSWER | RESPONSES,
        openapi_extra=document_form(TranslationForm, FILE_FIELD, {"model": backend.model}),
    )
    async def create_translation(request: Request) -> Response:
        """Translate a recording of up to two hours into English."""
        form, recording = await open_form(
            request, TranslationForm, (FILE_FIELD,), TRANSLATION_RULES
        )
        plan = plan_translation(form, backend, build_request_metadata(request, form))
        events = start_transcription(plan, backend, recording)
        language = name_language(None, backend.capabilities)
        responder = TranscriptResponder(
            form.response_format, "translate", language, form.temperature
        )
        return CancellableResponse(partial(responder.respond, events))

    return router
