"""The body of `POST /v1/responses`. The route checks rules between fields."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from sglang_omni.protocol.body import MAX_MESSAGES, MAX_TOOLS, Body, ModelName, ShortName
from sglang_omni.protocol.chat import ChatTemplateOptions, NamedSchema, PlainFormat
from sglang_omni.protocol.functions import FunctionName, FunctionSpec, PlainChoice, to_choice
from sglang_omni.protocol.generation import GenerationFields, ReasoningEffort
from sglang_omni.protocol.response_items import InputItem

LOGPROBS_INCLUDE = "message.output_text.logprobs"
# OpenAI's limits.
MAX_METADATA_PAIRS = 16
MAX_METADATA_KEY = 64
MAX_METADATA_VALUE = 512
# Longer names of tools are cut in messages.
_MAX_SHOWN_CHARACTERS = 64


def _to_items(value: Any) -> Any:
    return [{"role": "user", "content": value}] if isinstance(value, str) else value


def _refuse_hosted_tool(tool: Any) -> Any:
    kind = tool.get("type") if isinstance(tool, dict) else None
    if isinstance(kind, str) and kind != "function":
        raise PydanticCustomError(
            "tool_type",
            "this server has no tool of type '{kind}'; it supports functions only",
            {"kind": kind[:_MAX_SHOWN_CHARACTERS]},
        )
    return tool


class ResponseFunctionTool(FunctionSpec):
    """A function that the model may call."""

    type: Literal["function"]


class NamedFunctionChoice(Body):
    """Call this function once."""

    type: Literal["function"]
    name: FunctionName


class AllowedToolsChoice(Body):
    """A subset of the functions, which may or must be called."""

    type: Literal["allowed_tools"]
    mode: Literal["auto", "required"]
    tools: Annotated[
        list[NamedFunctionChoice], Field(min_length=1, max_length=MAX_TOOLS, fail_fast=True)
    ]


class SchemaTextFormat(NamedSchema):
    """JSON that follows a schema."""

    type: Literal["json_schema"]


class ResponseTextConfig(Body):
    """The form of the answer's text."""

    format: Annotated[PlainFormat | SchemaTextFormat, Field(discriminator="type")] = PlainFormat(
        type="text"
    )


class ResponseReasoning(Body):
    """Whether the model reasons before it answers."""

    effort: ReasoningEffort | None = None


class ResponseStreamOptions(Body):
    """Options of a stream. None of OpenAI's has an effect here."""


FlatToolChoice = Annotated[
    PlainChoice | NamedFunctionChoice | AllowedToolsChoice,
    Field(discriminator="type"),
    BeforeValidator(
        to_choice,
        json_schema_input_type=Literal["auto", "none", "required"]
        | NamedFunctionChoice
        | AllowedToolsChoice,
    ),
]
Metadata = Annotated[
    dict[
        Annotated[str, Field(max_length=MAX_METADATA_KEY)],
        Annotated[str, Field(max_length=MAX_METADATA_VALUE)],
    ],
    Field(max_length=MAX_METADATA_PAIRS, description="Returned with the response"),
]


class CreateResponseBody(GenerationFields):
    """The body of `POST /v1/responses`."""

    model: ModelName = None
    input: Annotated[
        list[InputItem],
        Field(min_length=1, max_length=MAX_MESSAGES, fail_fast=True),
        BeforeValidator(_to_items, json_schema_input_type=str | list[InputItem]),
    ]
    instructions: Annotated[
        str | None,
        Field(description="The system message; not taken over from the previous response"),
    ] = None
    previous_response_id: Annotated[
        ShortName | None, Field(description="A stored response whose conversation goes on")
    ] = None
    store: Annotated[bool, Field(description="Keep the response, in memory")] = True
    metadata: Metadata = Field(default={})
    stream: bool = False
    stream_options: ResponseStreamOptions | None = None
    max_output_tokens: Annotated[int | None, Field(ge=1)] = None
    top_logprobs: Annotated[int | None, Field(ge=0, le=20)] = None
    include: Annotated[list[Literal["message.output_text.logprobs"]], Field(max_length=20)] = Field(
        default=[]
    )
    text: ResponseTextConfig = ResponseTextConfig()
    reasoning: ResponseReasoning = ResponseReasoning()
    chat_template_kwargs: ChatTemplateOptions = ChatTemplateOptions()
    tools: Annotated[
        list[Annotated[ResponseFunctionTool, BeforeValidator(_refuse_hosted_tool)]],
        Field(max_length=MAX_TOOLS, fail_fast=True),
    ] = Field(default=[])
    tool_choice: FlatToolChoice = Field(default="auto", validate_default=True)
    parallel_tool_calls: bool = True

    @property
    def wants_logprobs(self) -> bool:
        """Return whether the answer has log probabilities."""
        return LOGPROBS_INCLUDE in self.include or bool(self.top_logprobs)
