"""`/v1/audio/voices`: presets, and the voices that users store."""

from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import AfterValidator, AliasChoices, Field
from pydantic_core import PydanticCustomError

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.http.audio_output import check_spoken
from sglang_omni.entrypoints.http.errors import RESPONSES
from sglang_omni.entrypoints.http.request_body.form import FormBody, document_form, read_form
from sglang_omni.entrypoints.http.request_metadata import owner_of
from sglang_omni.pipeline.request import MediaPart
from sglang_omni.voices.registry import UploadedRecording
from sglang_omni.voices.store import StoredVoice

# The first is OpenAI's name.
FILES = ("audio_sample", "audio", "file", "ref_audio")
REFUSALS = frozenset({"", "false", "no", "0", "none", "null"})


def _says_yes(consent: str) -> str:
    if consent.strip().lower() in REFUSALS:
        raise PydanticCustomError("consent", "the speaker's consent is required to store a voice")
    return consent.strip()


class VoiceForm(FormBody):
    """The text fields of an upload."""

    name: Annotated[str, Field(max_length=64)]
    consent: Annotated[
        str,
        Field(
            max_length=1000,
            description="That the speaker agrees, in words, or the id of a record of it; it is "
            "stored with the voice",
        ),
        AfterValidator(_says_yes),
    ]
    ref_text: Annotated[
        str | None,
        Field(
            max_length=1000,
            validation_alias=AliasChoices("ref_text", "transcript", "text"),
            description="What the recording says; with it the voice is copied more closely",
        ),
    ] = None


def voice_json(voice: StoredVoice) -> dict[str, Any]:
    """A stored voice, as far as its owner need know."""
    return {
        "id": voice.id,
        "object": "audio.voice",
        "name": voice.name,
        "created_at": voice.created_at,
        "duration_seconds": voice.seconds,
        "has_transcript": voice.text is not None,
        "has_speaker_vector": voice.has_speaker,
    }


def routes(backend: Backend) -> APIRouter:
    """List, add and delete voices."""
    router = APIRouter(tags=["voices"])

    @router.get("/v1/audio/voices")
    async def list_voices(request: Request) -> dict[str, Any]:
        """Names of all voices that the caller may use, and what is known of the stored ones.

        `speaker_vectors` is false where the checkpoint has no speaker network: a cloned voice then
        is the model's impression of the recording alone, and less like it.
        """
        stored = backend.shelf.list_stored(owner_of(request))
        return {
            "voices": [*backend.voices, *(voice.name for voice in stored)],
            "default_voice": backend.default_voice,
            "aliases": dict(backend.voice_aliases),
            "uploaded_voices": [voice_json(voice) for voice in stored],
            "speaker_vectors": backend.has_speaker_encoder,
        }

    @router.post(
        "/v1/audio/voices",
        responses=RESPONSES,
        status_code=201,
        openapi_extra=document_form(VoiceForm, FILES[0], {"name": "me", "consent": "I agree"}),
    )
    async def create_voice(request: Request) -> JSONResponse:
        """Store the voice of a recording, to be used by its name or id. Only the key that stored
        it sees it. What is kept is the voice, not the recording."""
        fields, recording = await read_form(request, VoiceForm, FILES)
        check_spoken(fields.ref_text or "", backend.capabilities, "ref_text")
        upload = UploadedRecording(
            name=fields.name,
            recording=MediaPart("audio", (recording,), FILES[0]),
            text=fields.ref_text or None,
            consent=fields.consent,
            owner=owner_of(request),
        )
        taken = (*backend.voices, *backend.voice_aliases)
        voice = await backend.shelf.add(upload, taken)
        return JSONResponse(voice_json(voice), status_code=201)

    @router.delete("/v1/audio/voices/{voice}", responses=RESPONSES)
    async def delete_voice(voice: str, request: Request) -> dict[str, Any]:
        """Delete a stored voice by its id or name, file and all. Answers under way go on."""
        admin = bool(request.state.is_admin)
        gone = backend.shelf.remove(voice, owner_of(request), admin=admin)
        return {"id": gone.id, "object": "audio.voice", "deleted": True}

    return router
