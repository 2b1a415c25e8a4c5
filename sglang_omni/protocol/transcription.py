"""The text fields of `POST /v1/audio/transcriptions` and `POST /v1/audio/translations`."""

import json
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from sglang_omni.protocol.body import FormBody, ModelName, RequestPriority, Timeout

TranscriptFormat = Literal["json", "text", "verbose_json", "srt", "vtt"]


def _reject_speakers(response_format: Any) -> Any:
    if response_format == "diarized_json":
        raise PydanticCustomError(
            "response_format", "the server does not tell speakers apart; use verbose_json"
        )
    return response_format


def _to_chunking_vad(strategy: Any) -> Any:
    """Return the object for `auto`, or for a JSON text, as clients send objects in a form."""
    if strategy == "auto":
        return {"type": "server_vad"}
    try:
        return json.loads(strategy) if isinstance(strategy, str) else strategy
    except (ValueError, RecursionError):
        raise PydanticCustomError("json", "must be 'auto' or a JSON object") from None


class ChunkingVad(FormBody):
    """How a recording is cut into pieces, by voice activity."""

    type: Literal["server_vad"]
    threshold: Annotated[
        float, Field(gt=0, lt=1, description="Probability at which speech begins")
    ] = 0.4
    silence_duration_ms: Annotated[
        int, Field(ge=100, le=10_000, description="A pause that ends a piece")
    ] = 500
    prefix_padding_ms: Annotated[
        int, Field(ge=0, le=2_000, description="Sound around a piece, where it is silent")
    ] = 200


class RecordingForm(FormBody):
    """The fields that both routes have."""

    model: ModelName = None
    prompt: Annotated[str | None, Field(max_length=2000, description="Words to expect")] = None
    response_format: Annotated[
        TranscriptFormat,
        BeforeValidator(_reject_speakers, json_schema_input_type=TranscriptFormat),
        Field(description="verbose_json, srt and vtt have times"),
    ] = "json"
    temperature: Annotated[float, Field(ge=0, le=1)] = 0.0
    priority: RequestPriority = "normal"
    timeout: Timeout | None = None


class TranscriptionForm(RecordingForm):
    """The text fields of a transcription."""

    language: Annotated[str | None, Field(max_length=32)] = None
    max_tokens: Annotated[
        int | None, Field(ge=1, description="Maximum length of the text of a piece; an extension")
    ] = None
    stream: bool = False
    chunking_strategy: Annotated[
        ChunkingVad | None,
        BeforeValidator(_to_chunking_vad, json_schema_input_type=Literal["auto"] | ChunkingVad),
        Field(
            description="How to cut the recording. Without it, one of at most 30 s is transcribed "
            "as a whole if no times are asked for"
        ),
    ] = None
    timestamp_granularities: Annotated[
        list[Literal["segment", "word"]],
        Field(description="segment, in verbose_json; word is rejected there"),
    ] = Field(default=[])
    include: Annotated[
        list[Literal["logprobs"]],
        Field(description="logprobs: those of the tokens, in an answer of the format json"),
    ] = Field(default=[])


class TranslationForm(RecordingForm):
    """The text fields of a translation into English."""
