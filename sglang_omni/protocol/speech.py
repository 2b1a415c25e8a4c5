"""The bodies of what reads a text aloud. Rules that join two fields live with the routes."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from sglang_omni.protocol.audio import AudioFormat
from sglang_omni.protocol.body import (
    Body,
    RefAudio,
    RefText,
    RequestPriority,
    SampleRate,
    Seed,
    Timeout,
    VoiceName,
)

# A book: what is read aloud is cut as it is read. The body's limit, and the time that a request
# may take, bound it sooner.
MAX_SPEECH_CHARACTERS = 4_000_000
MAX_INSTRUCTION_CHARACTERS = 500


def _require_text(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError("blank", "must not be blank")
    return text


def _to_instructions(value: Any) -> Any:
    return {"style": value} if isinstance(value, str) else value


SpokenText = Annotated[
    str, Field(min_length=1, max_length=MAX_SPEECH_CHARACTERS), AfterValidator(_require_text)
]
Feature = Annotated[str, Field(min_length=1, max_length=50)]


class Instructions(Body):
    """How to speak, by the fields that the model knows. Without an English name for a value, write
    the model's own, which are Chinese."""

    emotion: Feature | None = None
    dialect: Feature | None = None
    style: Annotated[str, Field(min_length=1, max_length=MAX_INSTRUCTION_CHARACTERS)] | None = None
    speed: Feature | None = None
    pitch: Feature | None = None
    volume: Feature | None = None


class SpeechOptions(Body):
    """Everything but the text that a reading of it may be asked for."""

    voice: VoiceName | None = None
    ref_audio: RefAudio = None
    ref_text: RefText = None
    instructions: Annotated[
        Instructions | None,
        BeforeValidator(_to_instructions, json_schema_input_type=str | Instructions),
        Field(description="Free text (a style), or fields; an extension of OpenAI's string"),
    ] = None
    task: Annotated[
        Literal["speech", "music", "sound"],
        Field(description="What the text is: words to speak, or a description; an extension"),
    ] = "speech"
    response_format: AudioFormat = "wav"
    speed: Annotated[float, Field(ge=0.25, le=4)] = 1.0
    sample_rate: SampleRate | None = None
    max_seconds: Annotated[
        float | None, Field(gt=0, le=3600, description="Of speech at speed 1; an extension")
    ] = None
    seed: Seed | None = None
    cfg: Annotated[
        float | None, Field(ge=0, le=10, description="Strength of guidance; an extension")
    ] = None
    sigma: Annotated[
        float | None, Field(ge=0, le=2, description="Scale of the sampler's noise; an extension")
    ] = None
    temperature: Annotated[
        float | None, Field(ge=0, le=5, description="Of the sampler's noise; an extension")
    ] = None
    priority: RequestPriority = "normal"
    timeout: Timeout | None = None


class SpeechBody(SpeechOptions):
    """The body of `POST /v1/audio/speech`."""

    model: str
    input: SpokenText
    stream_format: Annotated[
        Literal["audio", "sse"],
        Field(description="The file as it is synthesised, or server-sent events that carry it"),
    ] = "audio"
