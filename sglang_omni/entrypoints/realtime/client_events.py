"""Schemas of the client events. Unknown fields are rejected."""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from sglang_omni.entrypoints.realtime.item_schema import ItemBody
from sglang_omni.entrypoints.realtime.session_schema import ResponseBody, SessionBody
from sglang_omni.protocol.body import MAX_NAME, Body

Name = Annotated[str, Field(max_length=MAX_NAME)]


class ClientEvent(Body):
    """Fields that every client event may have."""

    event_id: Annotated[str, Field(max_length=512)] | None = None


class SessionUpdate(ClientEvent):
    """Change settings of the session. Fields that are absent keep their values."""

    type: Literal["session.update"]
    session: SessionBody


class InputAudioBufferAppend(ClientEvent):
    """Append user audio to the input buffer."""

    type: Literal["input_audio_buffer.append"]
    audio: str


class InputAudioBufferCommit(ClientEvent):
    """Commit the input buffer as the user's turn."""

    type: Literal["input_audio_buffer.commit"]


class InputAudioBufferClear(ClientEvent):
    """Discard the audio in the input buffer."""

    type: Literal["input_audio_buffer.clear"]


class ItemCreate(ClientEvent):
    """Insert an item into the conversation after `previous_item_id`; `root` inserts it first."""

    type: Literal["conversation.item.create"]
    item: ItemBody
    previous_item_id: Name | None = None


class ItemDelete(ClientEvent):
    """Delete an item from the conversation."""

    type: Literal["conversation.item.delete"]
    item_id: Name


class ItemRetrieve(ClientEvent):
    """Retrieve an item with its audio."""

    type: Literal["conversation.item.retrieve"]
    item_id: Name


class ItemTruncate(ClientEvent):
    """Truncate a spoken answer to the part that was played."""

    type: Literal["conversation.item.truncate"]
    item_id: Name
    content_index: Annotated[int, Field(ge=0)]
    audio_end_ms: Annotated[int, Field(ge=0)]


class ResponseCreate(ClientEvent):
    """Create a response."""

    type: Literal["response.create"]
    response: ResponseBody = ResponseBody()


class ResponseCancel(ClientEvent):
    """Cancel the active response."""

    type: Literal["response.cancel"]
    response_id: Name | None = None


class OutputAudioBufferClear(ClientEvent):
    """Stop playback. Only for WebRTC and SIP, where the server plays the audio."""

    type: Literal["output_audio_buffer.clear"]


Event = (
    SessionUpdate
    | InputAudioBufferAppend
    | InputAudioBufferCommit
    | InputAudioBufferClear
    | ItemCreate
    | ItemDelete
    | ItemRetrieve
    | ItemTruncate
    | ResponseCreate
    | ResponseCancel
    | OutputAudioBufferClear
)
EVENTS: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="type")])
