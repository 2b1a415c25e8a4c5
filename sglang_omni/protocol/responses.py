"""The body of `POST /v1/responses`. The route checks rules between fields."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

from sglang_omni.protocol.body import MAX_MESSAGES, MAX_TOOLS, Body, ModelName, ShortName
from sglang_omni.protocol.chat import ChatTemplateOptions, NamedSchema, PlainFormat
from sglang_omni.protocol.functions import FunctionName, FunctionSpec, PlainChoice, to_choice
from sglang_omni.protocol.generation import GenerationFields, ReasoningEffort
from sglang_omni.protocol.images import ConversationImageFields
from sglang_omni.protocol.response_items import InputItem

IMAGE_TOOL = "image_generation"
# The types of tools in the locations of pydantic's problems.
_TAGS_BY_TYPE = {"function": "<function tool>", IMAGE_TOOL: "<image tool>"}
TOOL_TAGS = frozenset(_TAGS_BY_TYPE.values())
LOGPROBS_INCLUDE = "message.output_text.logprobs"
# OpenAI's limits.
MAX_METADATA_PAIRS = 16
MAX_METADATA_KEY = 64
MAX_METADATA_VALUE = 512
# Longer names of tools are cut in messages.
_MAX_SHOWN_CHARACTERS = 64


def _to_items(value: Any) -> Any:
    return [{"role": "user", "content": value}] if isinstance(value, str) else value


def _refuse_other_tools(tool: Any) -> Any:
    kind = tool.get("type") if isinstance(tool, dict) else None
    if isinstance(kind, str) and kind not in ("function", IMAGE_TOOL):
        raise PydanticCustomError(
            "tool_type",
            "this server has no tool of type '{kind}'; it supports functions and image_generation",
            {"kind": kind[:_MAX_SHOWN_CHARACTERS]},
        )
    return tool


class ResponseFunctionTool(FunctionSpec):
    """A function that the model may call."""

    type: Literal["function"]


class ImageGenerationTool(ConversationImageFields):
    """The tool that draws images, or changes those of the conversation."""

    type: Literal["image_generation"]


class NamedFunctionChoice(Body):
    """Call this function once."""

    type: Literal["function"]
    name: FunctionName


class ImageToolChoice(Body):
    """Answer with an image."""

    type: Literal["image_generation"]


class AllowedToolsChoice(Body):
    """A subset of the tools, which may or must be called."""

    type: Literal["allowed_tools"]
    mode: Literal["auto", "required"]
    tools: Annotated[
        list[Annotated[NamedFunctionChoice | ImageToolChoice, Field(discriminator="type")]],
        Field(min_length=1, max_length=MAX_TOOLS, fail_fast=True),
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


def _get_tool_tag(tool: Any) -> str | None:
    kind = tool.get("type") if isinstance(tool, dict) else getattr(tool, "type", None)
    return _TAGS_BY_TYPE.get(kind) if isinstance(kind, str) else None


ResponseTool = Annotated[
    Annotated[ResponseFunctionTool, Tag(_TAGS_BY_TYPE["function"])]
    | Annotated[ImageGenerationTool, Tag(_TAGS_BY_TYPE[IMAGE_TOOL])],
    Discriminator(_get_tool_tag),
    BeforeValidator(_refuse_other_tools),
]
FlatToolChoice = Annotated[
    PlainChoice | NamedFunctionChoice | ImageToolChoice | AllowedToolsChoice,
    Field(discriminator="type"),
    BeforeValidator(
        to_choice,
        json_schema_input_type=Literal["auto", "none", "required"]
        | NamedFunctionChoice
        | ImageToolChoice
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
    tools: Annotated[list[ResponseTool], Field(max_length=MAX_TOOLS, fail_fast=True)] = Field(
        default=[]
    )
    tool_choice: FlatToolChoice = Field(default="auto", validate_default=True)
    parallel_tool_calls: bool = True

    @property
    def wants_logprobs(self) -> bool:
        """Return whether the answer has log probabilities."""
        return LOGPROBS_INCLUDE in self.include or bool(self.top_logprobs)
