"""The routes of `/v1/audio/voices`, for preset voices and voices that users store."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import AfterValidator, AliasChoices, Field
from pydantic_core import PydanticCustomError

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.http.errors import RESPONSES
from sglang_omni.entrypoints.http.request_body.form import document_form, read_form
from sglang_omni.entrypoints.http.request_metadata import get_owner
from sglang_omni.entrypoints.requests.voices import check_cloning, check_speakable
from sglang_omni.pipeline.request import MediaPart
from sglang_omni.protocol.body import FormBody
from sglang_omni.voices.registry import UploadedRecording
from sglang_omni.voices.store import StoredVoice

# Accepted names of the file field; the first is OpenAI's.
FILE_FIELDS = ("audio_sample", "audio", "file", "ref_audio")
NEGATIVE_ANSWERS = frozenset({"", "false", "no", "0", "none", "null"})


def _check_consent(consent: str) -> str:
    if consent.strip().lower() in NEGATIVE_ANSWERS:
        raise PydanticCustomError("consent", "the speaker's consent is required to store a voice")
    return consent.strip()


class VoiceForm(FormBody):
    """The text fields of an upload."""

    name: Annotated[str, Field(max_length=64)]
    consent: Annotated[
        str,
        Field(
            max_length=1000,
            description="A statement that the speaker agrees, or the id of a record of it; it is "
            "stored with the voice",
        ),
        AfterValidator(_check_consent),
    ]
    ref_text: Annotated[
        str | None,
        Field(
            max_length=1000,
            validation_alias=AliasChoices("ref_text", "transcript", "text"),
            description="Transcript of the recording; with it the cloned voice is more similar",
        ),
    ] = None


def build_voice(voice: StoredVoice) -> dict[str, Any]:
    """Return the object of a stored voice."""
    return {
        "id": voice.id,
        "object": "audio.voice",
        "name": voice.name,
        "created_at": voice.created_at,
        "duration_seconds": voice.seconds,
        "has_transcript": voice.text is not None,
        "has_speaker_vector": voice.has_speaker,
    }


def build_aliases(backend: Backend, stored_names: Sequence[str]) -> dict[str, str]:
    """Return the preset of each alias that no stored voice has the name of."""
    aliases = {**backend.openai_voices, **backend.voice_aliases}
    return {
        name: preset
        for name, preset in aliases.items()
        if name in backend.voice_aliases or name not in stored_names
    }


def create_router(backend: Backend) -> APIRouter:
    """Return the routes to list, add and delete voices."""
    router = APIRouter(tags=["voices"])

    @router.get("/v1/audio/voices")
    async def list_voices(request: Request) -> dict[str, Any]:
        """List the names of all voices that the caller may use, with details of the stored ones.

        `aliases` has the preset of each second name, OpenAI's voices included. `speaker_vectors` is
        false if the checkpoint has no speaker encoder. A cloned voice is then conditioned on the
        recording alone and is less similar to it.
        """
        stored = backend.voice_registry.list_stored(get_owner(request))
        return {
            "voices": [*backend.voices, *(voice.name for voice in stored)],
            "default_voice": backend.default_voice,
            "aliases": build_aliases(backend, [voice.name for voice in stored]),
            "uploaded_voices": [build_voice(voice) for voice in stored],
            "speaker_vectors": backend.has_speaker_encoder,
        }

    @router.post(
        "/v1/audio/voices",
        responses=RESPONSES,
        status_code=201,
        openapi_extra=document_form(
            VoiceForm, FILE_FIELDS[0], {"name": "me", "consent": "I agree"}
        ),
    )
    async def create_voice(request: Request) -> JSONResponse:
        """Store the voice of a recording for use by its name or id.

        Only the key that stored it can see it. The server keeps the voice, not the recording.
        """
        check_cloning(backend.capabilities, FILE_FIELDS[0])
        fields, recording = await read_form(request, VoiceForm, FILE_FIELDS)
        check_speakable(fields.ref_text or "", backend.capabilities, "ref_text")
        upload = UploadedRecording(
            name=fields.name,
            recording=MediaPart("audio", (recording,), FILE_FIELDS[0]),
            text=fields.ref_text or None,
            consent=fields.consent,
            owner=get_owner(request),
        )
        reserved_names = (*backend.voices, *backend.voice_aliases)
        voice = await backend.voice_registry.add(upload, reserved_names)
        return JSONResponse(build_voice(voice), status_code=201)

    @router.delete("/v1/audio/voices/{voice}", responses=RESPONSES)
    async def delete_voice(voice: str, request: Request) -> dict[str, Any]:
        """Delete a stored voice and its file by its id or name. Running requests continue."""
        is_admin = bool(request.state.is_admin)
        removed = backend.voice_registry.remove(voice, get_owner(request), admin=is_admin)
        return {"id": removed.id, "object": "audio.voice", "deleted": True}

    return router
