"""What bodies of requests have in common."""

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
# Several times what agents send in a day's conversation; each costs the server a look.
MAX_MESSAGES = 4096
MAX_PARTS = 1024
MAX_TOOLS = 128
# Two a second of the longest video that is taken.
MAX_FRAMES = 1200
# The arguments of one call, as text.
MAX_ARGUMENTS = 256 << 10
# Names and ids, which are kept, compared and quoted.
MAX_NAME = 512


class Body(BaseModel):
    """Base of every object in a request: unknown fields and loose types are refused.

    A null field counts as absent: OpenAI's clients send either.
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
    is_object = isinstance(voice, dict) and voice.keys() == {"id"}
    return voice["id"] if is_object else voice


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
    Field(description="A preset's or stored voice's name, or an object with its `id`"),
]
RefAudio = Annotated[
    Source | None,
    Field(description="A recording of 1 to 30 s to speak like, in place of a voice; an extension"),
]
RefText = Annotated[
    str | None, Field(max_length=1000, description="What the recording says; an extension")
]
SampleRate = Annotated[int, Field(ge=8000, le=48_000, description="Hz; an extension")]
Seed = Annotated[
    int,
    Field(
        ge=0,
        le=MAX_SEED,
        description="Fixes the noise that speech is made of. On a CPU the same request gives the "
        "same samples; beside other requests, a few of them are off by one step of 16 bits. On a "
        "GPU what is spoken beside it changes the rounding more",
    ),
]
RequestPriority = Annotated[
    Literal["high", "normal", "low"],
    Field(description="Whose turn comes first where requests wait; an extension"),
]
Timeout = Annotated[
    float,
    Field(gt=0, le=MAX_TIMEOUT_S, description="Seconds the whole answer may take; an extension"),
]
