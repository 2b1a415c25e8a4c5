"""Types of tools, tool choices and tool calls."""

import json
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from sglang_omni.protocol.body import (
    MAX_ARGUMENTS,
    MAX_TOOLS,
    Body,
    JsonSchema,
    ShortName,
)


def to_choice(choice: Any) -> Any:
    """Return a tool choice as an object, whatever its form."""
    return {"type": choice} if isinstance(choice, str) else choice


def _require_object_schema(schema: dict[str, Any]) -> dict[str, Any]:
    if schema.get("type", "object") != "object":
        raise PydanticCustomError("parameters", "the schema's type must be 'object'")
    return schema


def _require_json_object(text: str) -> str:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise PydanticCustomError("arguments", "must be a string that contains a JSON object")
    return text


FunctionName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
Parameters = Annotated[JsonSchema, AfterValidator(_require_object_schema)]


class FunctionCall(Body):
    """A function call of an earlier answer. `arguments` is a string with a JSON object."""

    name: ShortName
    arguments: Annotated[str, Field(max_length=MAX_ARGUMENTS), AfterValidator(_require_json_object)]


class PastCall(Body):
    """A tool call of an earlier answer, sent back unchanged."""

    id: ShortName
    type: Literal["function"] = "function"
    function: FunctionCall


class FunctionSpec(Body):
    """A function that the model may call.

    `parameters` is a JSON schema of an object. It is enforced if `strict` is true or if the call is
    forced.
    """

    name: FunctionName
    description: str = ""
    parameters: Parameters = Field(default={})
    strict: bool = False


class ToolSpec(Body):
    """A tool. Only functions are supported."""

    type: Literal["function"]
    function: FunctionSpec


class PlainChoice(Body):
    """Whether functions are called: as the model decides, never, or always."""

    type: Literal["auto", "none", "required"]


class NamedFunction(Body):
    """A function by its name."""

    name: FunctionName


class FunctionChoice(Body):
    """Call this function once."""

    type: Literal["function"]
    function: NamedFunction


class AllowedTools(Body):
    """A subset of the functions, which may or must be called."""

    mode: Literal["auto", "required"]
    tools: Annotated[
        list[FunctionChoice], Field(min_length=1, max_length=MAX_TOOLS, fail_fast=True)
    ]


class AllowedChoice(Body):
    """Restrict calls to some of the functions."""

    type: Literal["allowed_tools"]
    allowed_tools: AllowedTools


ToolChoice = Annotated[
    PlainChoice | FunctionChoice | AllowedChoice,
    Field(discriminator="type"),
    BeforeValidator(
        to_choice,
        json_schema_input_type=Literal["auto", "none", "required"] | FunctionChoice | AllowedChoice,
    ),
]
