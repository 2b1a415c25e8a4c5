"""The base class and the shared field types of request bodies."""

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    model_validator,
)
from pydantic_core import PydanticCustomError

from sglang_omni.protocol.json_schema import find_problem

MAX_SEED = 2**63 - 1
MAX_TIMEOUT_S = 86_400
# Several times what agents send in one day. Each message costs the server some time.
MAX_MESSAGES = 4096
MAX_PARTS = 1024
MAX_TOOLS = 128
# Two frames per second of the longest accepted video.
MAX_FRAMES = 1200
# Characters of the arguments of one call.
MAX_ARGUMENTS = 256 << 10
# Characters of a name or an id.
MAX_NAME = 512


class Body(BaseModel):
    """Base class of every object in a request. Unknown fields and other types are rejected.

    A null field counts as absent, because OpenAI's clients send either.
    """

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: item for name, item in value.items() if item is not None}
        return value


class FormBody(BaseModel):
    """Base class for the text fields of a form. Unknown fields are rejected; numbers are text."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, frozen=True)


def _to_voice_name(voice: Any) -> Any:
    if isinstance(voice, dict) and voice.keys() == {"id"}:
        return voice["id"]
    if isinstance(voice, dict | list):
        reason = "must be one name or an object with an id; this server does not mix voices"
        raise PydanticCustomError("voice_mix", reason)
    return voice


def _check_json_schema(schema: dict[str, Any]) -> dict[str, Any]:
    problem = find_problem(schema)
    if problem is not None:
        raise PydanticCustomError("json_schema", "{problem}", {"problem": problem})
    return schema


JsonSchema = Annotated[dict[str, Any], AfterValidator(_check_json_schema)]
NonEmpty = Annotated[str, Field(min_length=1)]
ShortName = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
Source = Annotated[
    str,
    Field(min_length=1, description="http(s) URL, data URI, or path on the server if allowed"),
]
VoiceName = Annotated[
    str,
    BeforeValidator(_to_voice_name, json_schema_input_type=str | dict[Literal["id"], str]),
    Field(description="Name of a preset or stored voice, or an object with its `id`"),
]
ModelName = Annotated[
    str | None, Field(description="A name of the served model; unset: its main name")
]
RefAudio = Annotated[
    Source | None,
    Field(description="Recording of 1 to 30 s whose voice is cloned; an extension"),
]
RefText = Annotated[
    str | None, Field(max_length=1000, description="Transcript of the recording; an extension")
]
SampleRate = Annotated[int, Field(ge=8000, le=48_000, description="Hz; an extension")]
Seed = Annotated[
    int,
    Field(
        ge=0,
        le=MAX_SEED,
        description="Seed of the noise that speech is made of. On a CPU the same request gives the "
        "same samples; with other requests in parallel, a few samples differ by rounding, most of "
        "them by one 16-bit step. On a GPU, parallel requests change the rounding more",
    ),
]
VideoFps = Annotated[
    float,
    Field(ge=0.01, le=60, description="Frames per second to sample from a video; an extension"),
]
VideoMaxFrames = Annotated[
    int,
    Field(
        ge=1,
        le=1_000_000,
        description="Maximum number of frames to sample, if the server's is not lower; "
        "an extension",
    ),
]
RequestPriority = Annotated[
    Literal["high", "normal", "low"],
    Field(description="Priority in the queue; an extension"),
]
Timeout = Annotated[
    float,
    Field(gt=0, le=MAX_TIMEOUT_S, description="Limit for the whole answer, in s; an extension"),
]
