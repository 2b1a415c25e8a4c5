"""The bodies of the speech routes. The routes check rules between fields."""

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

# A whole book: the text is split while it is read. The limits on the body and on the duration of
# a request apply as well.
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
    """Style of the speech, by the model's fields.

    A value without an English name is given in Chinese, as the model knows it.
    """

    emotion: Feature | None = None
    dialect: Feature | None = None
    style: Annotated[str, Field(min_length=1, max_length=MAX_INSTRUCTION_CHARACTERS)] | None = None
    speed: Feature | None = None
    pitch: Feature | None = None
    volume: Feature | None = None


class SpeechOptions(Body):
    """Options of a speech request, without its text."""

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
        Field(description="Whether the text is to be spoken or describes audio; an extension"),
    ] = "speech"
    response_format: AudioFormat = "wav"
    speed: Annotated[float, Field(ge=0.25, le=4)] = 1.0
    sample_rate: SampleRate | None = None
    max_seconds: Annotated[
        float | None,
        Field(gt=0, le=3600, description="Maximum seconds of speech at speed 1; an extension"),
    ] = None
    seed: Seed | None = None
    cfg: Annotated[float | None, Field(ge=0, le=10, description="Guidance scale; an extension")] = (
        None
    )
    sigma: Annotated[
        float | None, Field(ge=0, le=2, description="Scale of the sampler's noise; an extension")
    ] = None
    temperature: Annotated[
        float | None,
        Field(ge=0, le=5, description="Temperature of the sampler's noise; an extension"),
    ] = None
    priority: RequestPriority = "normal"
    timeout: Timeout | None = None


class SpeechBody(SpeechOptions):
    """The body of `POST /v1/audio/speech`."""

    model: str
    input: SpokenText
    stream_format: Annotated[
        Literal["audio", "sse"],
        Field(description="The file during synthesis, or server-sent events that contain it"),
    ] = "audio"
