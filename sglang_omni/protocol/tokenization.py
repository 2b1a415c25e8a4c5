"""The bodies of `POST /tokenize` and `POST /detokenize`."""

from typing import Annotated, Any, Self

from pydantic import Field, PlainValidator, model_validator
from pydantic_core import PydanticCustomError

from sglang_omni.protocol.body import MAX_MESSAGES, MAX_TOOLS, Body, ModelName
from sglang_omni.protocol.chat import ChatMessage, ChatTemplateOptions
from sglang_omni.protocol.functions import ToolChoice, ToolSpec
from sglang_omni.protocol.generation import ReasoningEffort
from sglang_omni.protocol.token_ids import TokenIdList

MAX_TEXTS = 1024


def _check_texts(value: Any) -> str | tuple[str, ...]:
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise PydanticCustomError("prompt", "must be a text or a list of texts")
    if len(value) > MAX_TEXTS:
        raise PydanticCustomError("prompt", "must be at most {limit} texts", {"limit": MAX_TEXTS})
    return tuple(value)


Texts = Annotated[
    str | tuple[str, ...],
    PlainValidator(_check_texts, json_schema_input_type=str | list[str]),
    Field(description="A text, in which names of special tokens stand for them, or several"),
]


class TokenizeBody(Body):
    """The body of `POST /tokenize`: a text, several texts, or a chat."""

    model: ModelName = None
    prompt: Texts | None = None
    messages: Annotated[
        list[ChatMessage] | None,
        Field(
            min_length=1,
            max_length=MAX_MESSAGES,
            fail_fast=True,
            description="A chat without media, whose prompt ends where the answer begins",
        ),
    ] = None
    tools: Annotated[list[ToolSpec], Field(max_length=MAX_TOOLS, fail_fast=True)] = Field(
        default=[]
    )
    tool_choice: ToolChoice = Field(default="auto", validate_default=True)
    reasoning_effort: ReasoningEffort = "none"
    chat_template_kwargs: ChatTemplateOptions = ChatTemplateOptions()
    return_token_strs: Annotated[
        bool, Field(description="Whether the answer also has each token as the tokenizer writes it")
    ] = False

    @model_validator(mode="after")
    def _require_one_input(self) -> Self:
        if (self.prompt is None) == (self.messages is None):
            raise PydanticCustomError("prompt", "send either prompt or messages")
        return self


class DetokenizeBody(Body):
    """The body of `POST /detokenize`."""

    model: ModelName = None
    tokens: TokenIdList
    skip_special_tokens: Annotated[
        bool, Field(description="Whether special tokens are left out of the text")
    ] = False
