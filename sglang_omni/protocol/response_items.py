"""Items of a model response: its input, and earlier output that is sent back."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from sglang_omni.protocol.body import MAX_PARTS, Body, ShortName, Source
from sglang_omni.protocol.functions import FunctionCall
from sglang_omni.protocol.images import ImageFileFormat
from sglang_omni.protocol.media import InputAudioPart

_NOT_USED = Field(description="Accepted, not used")

ItemStatus = Literal["in_progress", "completed", "incomplete"]
UnusedList = Annotated[list[Any], _NOT_USED]
UnusedStatus = Annotated[ItemStatus | None, _NOT_USED]


class InputTextPart(Body):
    """Text of a message."""

    type: Literal["input_text"]
    text: str


class OutputTextPart(Body):
    """Text of an earlier answer."""

    type: Literal["output_text"]
    text: str
    annotations: UnusedList = Field(default=[])
    logprobs: UnusedList = Field(default=[])


class RefusalPart(Body):
    """Text of an earlier answer that declined. It counts as text."""

    type: Literal["refusal"]
    refusal: str


class InputImagePart(Body):
    """An image. With `low` detail it has at most as many pixels as 512 x 512."""

    type: Literal["input_image"]
    image_url: Source
    detail: Literal["auto", "low", "high"] = "auto"


class InputFilePart(Body):
    """A file with an image, audio or a video, by its data or its URL.

    The kind is read from the media type of a data URI, or else from the name's ending.
    """

    type: Literal["input_file"]
    file_data: Annotated[
        Source | None, Field(description="Data URI, or base64 with a filename")
    ] = None
    file_url: Source | None = None
    filename: ShortName | None = None

    @model_validator(mode="after")
    def _require_one_source(self) -> "InputFilePart":
        if (self.file_data is None) == (self.file_url is None):
            raise PydanticCustomError("input_file", "requires either file_data or file_url")
        return self


def _to_text_parts(content: Any) -> Any:
    return [{"type": "input_text", "text": content}] if isinstance(content, str) else content


InputPart = Annotated[
    InputTextPart | OutputTextPart | RefusalPart | InputImagePart | InputAudioPart | InputFilePart,
    Field(discriminator="type"),
]
InputContent = Annotated[
    list[InputPart],
    Field(max_length=MAX_PARTS, fail_fast=True),
    BeforeValidator(_to_text_parts, json_schema_input_type=str | list[InputPart]),
]
TextParts = Annotated[
    list[InputTextPart],
    Field(max_length=MAX_PARTS, fail_fast=True),
    BeforeValidator(_to_text_parts, json_schema_input_type=str | list[InputTextPart]),
]
TEXT_PARTS = (InputTextPart, OutputTextPart, RefusalPart)


class ResponseMessage(Body):
    """A message. Only a user's may have media.

    The texts of the roles `system` and `developer` are added to the instructions.
    """

    type: Literal["message"] = "message"
    role: Literal["user", "system", "developer", "assistant"]
    id: ShortName | None = None
    status: UnusedStatus = None
    content: InputContent

    @field_validator("content")
    @classmethod
    def _check_content(cls, content: list[InputPart], info: ValidationInfo) -> list[InputPart]:
        role = info.data.get("role")
        if role != "user" and not all(isinstance(part, TEXT_PARTS) for part in content):
            raise PydanticCustomError("role", "only a user message may contain media")
        if role != "assistant" and not content:
            raise PydanticCustomError("missing", "Field required")
        return content


class ResponseFunctionCall(FunctionCall):
    """A call of a function in an earlier answer."""

    type: Literal["function_call"]
    call_id: ShortName
    id: ShortName | None = None
    status: UnusedStatus = None


class ResponseFunctionCallOutput(Body):
    """What a function returned: text, whole or in parts."""

    type: Literal["function_call_output"]
    call_id: ShortName
    output: TextParts
    id: ShortName | None = None
    status: UnusedStatus = None


class ResponseReasoningItem(Body):
    """Reasoning of an earlier answer. It is accepted, and not part of the prompt."""

    type: Literal["reasoning"]
    id: ShortName | None = None
    summary: UnusedList = Field(default=[])
    content: UnusedList = Field(default=[])
    encrypted_content: Annotated[str, _NOT_USED] = ""
    status: UnusedStatus = None


class ResponseImageCall(Body):
    """An image of an earlier answer: base64, or by its id if its response is stored."""

    type: Literal["image_generation_call"]
    id: ShortName
    result: Annotated[Source | None, Field(description="The image in base64")] = None
    status: Annotated[ItemStatus | Literal["generating", "failed"] | None, _NOT_USED] = None
    revised_prompt: Annotated[str, _NOT_USED] = ""
    size: Annotated[str, _NOT_USED] = ""
    quality: Annotated[str, _NOT_USED] = ""
    background: Annotated[str, _NOT_USED] = ""
    output_format: ImageFileFormat = "png"
    seed: Annotated[int | None, _NOT_USED] = None


class ResponseItemReference(Body):
    """An item of a stored response, by its id."""

    type: Literal["item_reference"]
    id: ShortName


def _add_type(item: Any) -> Any:
    """Return an item with its type, which messages and references may leave out."""
    if not isinstance(item, dict) or item.get("type") is not None:
        return item
    is_reference = "id" in item and "role" not in item
    return {**item, "type": "item_reference" if is_reference else "message"}


Item = (
    ResponseMessage
    | ResponseFunctionCall
    | ResponseFunctionCallOutput
    | ResponseReasoningItem
    | ResponseImageCall
)
InputItem = Annotated[
    ResponseMessage
    | ResponseFunctionCall
    | ResponseFunctionCallOutput
    | ResponseReasoningItem
    | ResponseImageCall
    | ResponseItemReference,
    Field(discriminator="type"),
    BeforeValidator(_add_type),
]
