"""Conversion of the body of a model response to a chat, and to a request of the pipeline."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.requests.chat import build_chat_request
from sglang_omni.entrypoints.requests.field_names import FieldNames
from sglang_omni.entrypoints.requests.metadata import RequestMetadata
from sglang_omni.entrypoints.requests.response_images import (
    ImageToolUse,
    ResponseImages,
    build_image_function,
    build_response_images,
    find_image_tool,
)
from sglang_omni.entrypoints.requests.response_messages import ChatMessages, ConversationEntry
from sglang_omni.pipeline.request import ChatRequest
from sglang_omni.protocol.chat import ChatBody, ChatMessage, PlainFormat, SchemaFormat
from sglang_omni.protocol.functions import (
    AllowedChoice,
    AllowedTools,
    FunctionChoice,
    FunctionSpec,
    NamedFunction,
    PlainChoice,
    ToolSpec,
)
from sglang_omni.protocol.generation import GenerationFields, StreamOptions
from sglang_omni.protocol.media import ImagePart
from sglang_omni.protocol.responses import (
    IMAGE_TOOL,
    AllowedToolsChoice,
    CreateResponseBody,
    ImageToolChoice,
    NamedFunctionChoice,
)

# What other fields of a chat are called in the body of a response.
_RENAMED = {
    "messages": "input",
    "response_format": "text.format",
    "response_format.json_schema": "text.format",
    "max_tokens": "max_output_tokens",
}


@dataclass(frozen=True)
class PreparedRequest:
    """The chat that makes a response, and what its fields are called in the client's body.

    `images` are those that the answer has or may have.
    """

    chat: ChatRequest
    field_names: FieldNames
    images: ResponseImages | None = None


def prepare_request(
    body: CreateResponseBody,
    entries: Sequence[ConversationEntry],
    backend: Backend,
    metadata: RequestMetadata,
) -> PreparedRequest:
    """Convert a body to a request of the pipeline. Raises `InvalidRequest`, naming the field.

    Args:
        body: The body.
        entries: The conversation that is answered: earlier items, then those of the body.
        backend: The backend that answers.
        metadata: The metadata of the request.
    """
    converted = ChatMessages(body.instructions, entries)
    names = converted.field_names
    use = find_image_tool(body, backend)
    functions = _list_functions(body, converted.messages, use)
    tools = {f"tools.{place}.function": f"tools.{i}" for place, i in enumerate(functions)}
    field_names = FieldNames({**_RENAMED, **tools, **names.renamed}, names.whole)
    with field_names.in_errors():
        chat_body = ChatBody(
            messages=converted.messages,
            **_convert_options(body),
            **({} if use and use.is_forced else _convert_tools(body, functions.values())),
        )
        chat = build_chat_request(chat_body, backend, metadata, None, lambda audio_id: None)
        images = None if use is None else build_response_images(use, chat, backend)
    return PreparedRequest(chat, field_names, images)


def _convert_options(body: CreateResponseBody) -> dict[str, Any]:
    """Return the fields of the chat about how it is sampled and sent."""
    shared = GenerationFields.model_fields.keys() & body.model_fields_set
    return {
        **{name: getattr(body, name) for name in shared},
        "model": body.model,
        "stream": body.stream,
        "stream_options": None if body.stream_options is None else StreamOptions(),
        "max_tokens": body.max_output_tokens,
        "logprobs": body.wants_logprobs,
        "top_logprobs": body.top_logprobs if body.wants_logprobs else None,
        "response_format": _convert_format(body),
        "reasoning_effort": body.reasoning.effort,
        "chat_template_kwargs": body.chat_template_kwargs,
    }


def _convert_format(body: CreateResponseBody) -> PlainFormat | SchemaFormat:
    chosen = body.text.format
    if isinstance(chosen, PlainFormat):
        return chosen
    return SchemaFormat(type="json_schema", json_schema=chosen)


def _list_functions(
    body: CreateResponseBody, messages: Sequence[ChatMessage], use: ImageToolUse | None
) -> dict[int, FunctionSpec]:
    """Return the functions by their index among the tools; the image tool is one of them.

    An answer that must be an image has none.
    """
    if use is not None and use.is_forced:
        return {}
    found: dict[int, FunctionSpec] = {}
    for index, tool in enumerate(body.tools):
        if isinstance(tool, FunctionSpec):
            found[index] = tool
        elif use is not None:
            found[index] = build_image_function(any(map(_has_image, messages)))
    return found


def _convert_tools(body: CreateResponseBody, functions: Iterable[FunctionSpec]) -> dict[str, Any]:
    return {
        "tools": [ToolSpec(type="function", function=function) for function in functions],
        "tool_choice": _convert_choice(body.tool_choice),
        "parallel_tool_calls": body.parallel_tool_calls,
    }


def _has_image(message: ChatMessage) -> bool:
    return bool(message.images) or any(isinstance(part, ImagePart) for part in message.content)


def _convert_choice(
    choice: PlainChoice | NamedFunctionChoice | ImageToolChoice | AllowedToolsChoice,
) -> PlainChoice | FunctionChoice | AllowedChoice:
    match choice:
        case PlainChoice():
            return choice
        case NamedFunctionChoice() | ImageToolChoice():
            return _convert_named(choice)
        case AllowedToolsChoice(mode=mode, tools=tools):
            allowed = AllowedTools(mode=mode, tools=[_convert_named(tool) for tool in tools])
            return AllowedChoice(type="allowed_tools", allowed_tools=allowed)


def _convert_named(choice: NamedFunctionChoice | ImageToolChoice) -> FunctionChoice:
    name = choice.name if isinstance(choice, NamedFunctionChoice) else IMAGE_TOOL
    return FunctionChoice(type="function", function=NamedFunction(name=name))
