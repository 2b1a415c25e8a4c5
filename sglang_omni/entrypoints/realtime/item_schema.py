"""Schemas of the items that clients send. Unknown fields are rejected, nulls count as absent."""

from typing import Annotated, Literal

from pydantic import Field

from sglang_omni.protocol.body import (
    MAX_ARGUMENTS,
    MAX_NAME,
    MAX_PARTS,
    Body,
)

Id = Annotated[str, Field(min_length=1, max_length=64)]


class InputText(Body):
    """Text of the user or the system."""

    type: Literal["input_text"]
    text: str


class InputAudio(Body):
    """Audio of the user: base64 in the session's input format."""

    type: Literal["input_audio"]
    audio: str | None = None
    transcript: str | None = None


class InputImage(Body):
    """An image, as a data URI or a URL."""

    type: Literal["input_image"]
    image_url: Annotated[str, Field(min_length=1)]
    detail: Literal["auto", "low", "high"] = "auto"


class OutputText(Body):
    """Text of the assistant. `text` is the beta name of the type."""

    type: Literal["output_text", "text"]
    text: str


class OutputAudio(Body):
    """Speech of the assistant. Only the transcript is kept."""

    type: Literal["output_audio", "audio"]
    transcript: str
    audio: str | None = None


PartBody = Annotated[
    InputText | InputAudio | InputImage | OutputText | OutputAudio, Field(discriminator="type")
]


class ItemBase(Body):
    """Fields that every item may have."""

    id: Id | None = None
    object: Literal["realtime.item"] = "realtime.item"
    status: Literal["completed", "incomplete", "in_progress"] = "completed"


class MessageBody(ItemBase):
    """A message with text, audio or images."""

    type: Literal["message"]
    role: Literal["system", "user", "assistant"]
    content: Annotated[list[PartBody], Field(min_length=1, max_length=MAX_PARTS, fail_fast=True)]


class CallBody(ItemBase):
    """A function call that the model made."""

    type: Literal["function_call"]
    name: Annotated[str, Field(max_length=MAX_NAME)]
    arguments: Annotated[str, Field(max_length=MAX_ARGUMENTS)]
    call_id: Id | None = None


class CallOutputBody(ItemBase):
    """The result of a function call."""

    type: Literal["function_call_output"]
    call_id: Id
    output: str


class ItemReference(Body):
    """A reference to an item of the conversation."""

    type: Literal["item_reference"]
    id: Id


ItemBody = Annotated[MessageBody | CallBody | CallOutputBody, Field(discriminator="type")]
InputItem = Annotated[
    MessageBody | CallBody | CallOutputBody | ItemReference, Field(discriminator="type")
]
