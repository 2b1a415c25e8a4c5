"""The tool `image_generation` of a model response: the image that is asked for, or called for."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.requests.chat_images import build_conversation_image
from sglang_omni.entrypoints.requests.field_names import FieldNames
from sglang_omni.entrypoints.requests.images import (
    apply_drawing_fields,
    check_answer_form,
    choose_seeds,
)
from sglang_omni.entrypoints.requests.metadata import RequestMetadata
from sglang_omni.pipeline.image_call import CalledImage, ImageTool
from sglang_omni.pipeline.image_conversation import choose_source, keep_latest_images
from sglang_omni.pipeline.image_request import ImageRequest
from sglang_omni.pipeline.request import ChatRequest, MediaPart, Message, TextPart, list_media
from sglang_omni.protocol.errors import InvalidRequest
from sglang_omni.protocol.functions import FunctionSpec, PlainChoice
from sglang_omni.protocol.images import MAX_PROMPT_CHARACTERS
from sglang_omni.protocol.responses import (
    IMAGE_TOOL,
    AllowedToolsChoice,
    CreateResponseBody,
    ImageGenerationTool,
    ImageToolChoice,
)
from sglang_omni.protocol.tools import ToolCall

_PROMPT = {"type": "string", "description": "What the image shows, or how to change it"}
_CHANGE = {
    "type": "boolean",
    "description": "Whether the latest image of the conversation is changed",
}


@dataclass(frozen=True)
class ImageToolUse:
    """The tool of a request, its index among the tools, and how an answer uses it.

    `is_forced` tells that the answer is an image and nothing else.
    """

    tool: ImageGenerationTool
    index: int
    is_forced: bool

    @property
    def field_names(self) -> FieldNames:
        """Return what the fields of an image are called in the body."""
        names = ImageGenerationTool.model_fields
        fields = {name: f"tools.{self.index}.{name}" for name in names}
        return FieldNames({"prompt": "input", **fields})


@dataclass(frozen=True)
class ResponseImages:
    """The images of a response.

    Attributes:
        use: The tool and how it is used.
        image: The image that is the whole answer.
        called: The tool that the model may call, if it decides.
    """

    use: ImageToolUse
    image: ImageRequest | None = None
    called: ImageTool | None = None


def find_image_tool(body: CreateResponseBody, backend: Backend) -> ImageToolUse | None:
    """Return the image tool of a body, or None if it has none or must not use it.

    Raises `InvalidRequest` for a tool that is missing or given twice, or whose images the server
    cannot draw, naming the field.
    """
    found = [
        (i, tool) for i, tool in enumerate(body.tools) if isinstance(tool, ImageGenerationTool)
    ]
    is_wanted = isinstance(body.tool_choice, ImageToolChoice)
    if not found:
        if is_wanted:
            message = "tool_choice: requires the tool image_generation in tools"
            raise InvalidRequest(message, param="tool_choice")
        return None
    for index, tool in enumerate(body.tools):
        is_repeated = index > found[0][0] and isinstance(tool, ImageGenerationTool)
        if is_repeated or getattr(tool, "name", "") == IMAGE_TOOL:
            path = f"tools.{index}"
            raise InvalidRequest(f"{path}: image_generation is given already", param=path)
    if body.tool_choice.type == "none":
        return None
    index, tool = found[0]
    if not backend.capabilities.image_output:
        path, name = f"tools.{index}", backend.capabilities.name
        raise InvalidRequest(f"{path}: {name} draws no images on this server", param=path)
    use = ImageToolUse(tool, index, is_wanted or _must_draw(body))
    if use.is_forced:
        _check_image_alone(body)
    with use.field_names.in_errors():
        check_answer_form(tool, streams=body.stream)
    return use


def _check_image_alone(body: CreateResponseBody) -> None:
    """Check that an answer without words is not asked for what only words have."""
    unused = {"top_logprobs": body.wants_logprobs, "text.format": body.text.format.type != "text"}
    for name, is_given in unused.items():
        if is_given:
            raise InvalidRequest(f"{name}: the answer is an image alone", param=name)


def _must_draw(body: CreateResponseBody) -> bool:
    """Return whether a call is required, and the image tool is the only one to call."""
    match body.tool_choice:
        case PlainChoice(type="required"):
            return len(body.tools) == 1
        case AllowedToolsChoice(mode="required", tools=tools):
            return all(isinstance(tool, ImageToolChoice) for tool in tools)
    return False


def build_image_function(sees_images: bool) -> FunctionSpec:
    """Return the tool as a function that the model may call."""
    properties: dict[str, Any] = {"prompt": _PROMPT, **({"change": _CHANGE} if sees_images else {})}
    parameters = {"type": "object", "properties": properties, "required": ["prompt"]}
    return FunctionSpec(name=IMAGE_TOOL, description="Draw an image", parameters=parameters)


def build_response_images(use: ImageToolUse, chat: ChatRequest, backend: Backend) -> ResponseImages:
    """Return what draws the images of a response. Raises `InvalidRequest`, naming the field."""
    fields = use.tool
    seed = chat.sampling.seed if fields.seed is None else fields.seed
    with use.field_names.in_errors():
        seeds = choose_seeds(seed, 1, backend.image_options)
        metadata = RequestMetadata(chat.id, chat.tenant, chat.priority, chat.timeout_s)
        if use.is_forced:
            image = build_conversation_image(fields, chat.messages, seeds, backend, metadata)
            return ResponseImages(use, image=image)
        template = _build_template(fields, chat.messages, seeds, backend, metadata)
    max_images = backend.image_options.max_n

    def read(call: ToolCall) -> CalledImage | None:
        return read_call(call, template, changes=fields.source != "none")

    return ResponseImages(use, called=ImageTool(IMAGE_TOOL, max_images, read))


def _build_template(
    fields: ImageGenerationTool,
    messages: Sequence[Message],
    seeds: tuple[int, ...],
    backend: Backend,
    metadata: RequestMetadata,
) -> ImageRequest:
    """Return the request of an image that sees those of the conversation, without a prompt."""
    seen = [
        replace(message, content=tuple(part for part in message.content if _is_image(part)))
        for message in messages
    ]
    kept = keep_latest_images(seen, backend.image_options.max_references)
    source = choose_source(kept, fields.source)
    message = Message("user", (*list_media(kept), TextPart("")))
    return apply_drawing_fields(fields, (message,), source, seeds, backend, metadata)


def _is_image(part: object) -> bool:
    return isinstance(part, MediaPart) and part.kind == "image"


def read_call(call: ToolCall, template: ImageRequest, *, changes: bool) -> CalledImage | None:
    """Return the image that a call asks for, or None if it names no prompt.

    Args:
        call: The call of the model.
        template: The request without its prompt, with the images of the conversation.
        changes: Whether an image of the conversation may be changed, if the call wants that.
    """
    arguments = json.loads(call.arguments)
    prompt = arguments.get("prompt")
    if not isinstance(prompt, str) or not prompt.strip() or len(prompt) > MAX_PROMPT_CHARACTERS:
        return None
    is_change = changes and arguments.get("change") is True
    images = template.media if is_change else ()
    message = Message("user", (*images, TextPart(prompt)))
    source = template.source if is_change else None
    return CalledImage(prompt, replace(template, messages=(message,), source=source))
