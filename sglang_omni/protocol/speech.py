"""The bodies of the speech routes. The routes check rules between fields."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

from sglang_omni.protocol.audio import AudioFormat
from sglang_omni.protocol.body import (
    Body,
    ModelName,
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
# Turns of several speakers in one request.
MAX_TURNS = 100
# The types of `input` in the locations of pydantic's problems.
INPUT_TAGS = ("<text>", "<turns>")
# What a person reads before it is spoken.
MAX_PREVIEW_CHARACTERS = 20_000


def _require_text(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError("blank", "must not be blank")
    return text


def _to_instructions(value: Any) -> Any:
    return {"style": value} if isinstance(value, str) else value


Timestamps = Literal["none", "segment", "word"]
SpokenText = Annotated[
    str, Field(min_length=1, max_length=MAX_SPEECH_CHARACTERS), AfterValidator(_require_text)
]
Feature = Annotated[str, Field(min_length=1, max_length=50)]


WrittenWord = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(_require_text)]
Pronunciation = Annotated[str, Field(min_length=1, max_length=300)]
Lexicon = Annotated[dict[WrittenWord, Pronunciation], Field(max_length=1000)]


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


class ReadingFields(Body):
    """How a text is turned into words."""

    normalization: Annotated[
        Literal["auto", "none"],
        Field(description="Whether numbers, links and the like are spelled out; an extension"),
    ] = "auto"
    lexicon: Annotated[
        Lexicon | None,
        Field(description="Pronunciations: what is spoken for a written word; an extension"),
    ] = None
    language: Annotated[
        Literal["en", "zh"] | None,
        Field(description="Language of a text that shows none, such as a number; an extension"),
    ] = None


class SpeakerFields(Body):
    """Who speaks, and how."""

    voice: VoiceName | None = None
    ref_audio: RefAudio = None
    ref_text: RefText = None
    instructions: Annotated[
        Instructions | None,
        BeforeValidator(_to_instructions, json_schema_input_type=str | Instructions),
        Field(description="Free text (a style), or fields; an extension of OpenAI's string"),
    ] = None


class TurnBody(SpeakerFields):
    """What one of several speakers says. What it leaves out is as in the body."""

    text: SpokenText
    language: Annotated[
        Literal["en", "zh"] | None, Field(description="Language of a text that shows none")
    ] = None


def _limit_turns(turns: list[TurnBody]) -> list[TurnBody]:
    if sum(len(turn.text) for turn in turns) > MAX_SPEECH_CHARACTERS:
        reason = "the texts must have at most {limit} characters together"
        raise PydanticCustomError("too_long", reason, {"limit": MAX_SPEECH_CHARACTERS})
    return turns


Turns = Annotated[
    list[TurnBody], Field(min_length=1, max_length=MAX_TURNS), AfterValidator(_limit_turns)
]
SpokenInput = Annotated[
    Annotated[SpokenText, Tag(INPUT_TAGS[0])] | Annotated[Turns, Tag(INPUT_TAGS[1])],
    Discriminator(lambda value: INPUT_TAGS[isinstance(value, list)]),
    Field(description="A text or SSML, or the turns of several speakers; turns are an extension"),
]


class SpeechOptions(SpeakerFields, ReadingFields):
    """Options of a speech request, without its text."""

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
    timestamps: Annotated[
        Timestamps | None,
        Field(description="Whether to tell when segments, or words too, are spoken; an extension"),
    ] = None
    priority: RequestPriority = "normal"
    timeout: Timeout | None = None


class SpeechBody(SpeechOptions):
    """The body of `POST /v1/audio/speech`."""

    model: ModelName = None
    input: SpokenInput
    stream_format: Annotated[
        Literal["audio", "sse"],
        Field(description="The file during synthesis, or server-sent events that contain it"),
    ] = "audio"
    stream: Annotated[
        bool,
        Field(description="False: the file is sent when it is complete, with its size; extension"),
    ] = True
    verbose: Annotated[
        bool,
        Field(description="Answer in JSON: the complete file and its timestamps; an extension"),
    ] = False


class NormalizeBody(ReadingFields):
    """The body of `POST /v1/audio/normalize`: a text, and how it is read."""

    model: ModelName = None
    input: Annotated[
        str,
        Field(min_length=1, max_length=MAX_PREVIEW_CHARACTERS, description="Plain text or SSML"),
        AfterValidator(_require_text),
    ]
