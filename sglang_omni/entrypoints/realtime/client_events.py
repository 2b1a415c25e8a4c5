"""The events that clients may send, field by field. Unknown fields are refused."""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from sglang_omni.entrypoints.realtime.item_schema import ItemBody
from sglang_omni.entrypoints.realtime.session_schema import ResponseBody, SessionBody
from sglang_omni.protocol.body import MAX_NAME, Body

Named = Annotated[str, Field(max_length=MAX_NAME)]


class ClientEvent(Body):
    """What every event may have."""

    event_id: Annotated[str, Field(max_length=512)] | None = None


class SessionUpdate(ClientEvent):
    """Change the session; what is not named stays."""

    type: Literal["session.update"]
    session: SessionBody


class InputAudioBufferAppend(ClientEvent):
    """More of what the user says."""

    type: Literal["input_audio_buffer.append"]
    audio: str


class InputAudioBufferCommit(ClientEvent):
    """What is in the buffer is the user's turn."""

    type: Literal["input_audio_buffer.commit"]


class InputAudioBufferClear(ClientEvent):
    """Forget what is in the buffer."""

    type: Literal["input_audio_buffer.clear"]


class ItemCreate(ClientEvent):
    """Put an item into the conversation; behind `previous_item_id`, `root` for the beginning."""

    type: Literal["conversation.item.create"]
    item: ItemBody
    previous_item_id: Named | None = None


class ItemDelete(ClientEvent):
    """Take an item out of the conversation."""

    type: Literal["conversation.item.delete"]
    item_id: Named


class ItemRetrieve(ClientEvent):
    """Ask for an item with its sound."""

    type: Literal["conversation.item.retrieve"]
    item_id: Named


class ItemTruncate(ClientEvent):
    """Only this much of a spoken answer was played."""

    type: Literal["conversation.item.truncate"]
    item_id: Named
    content_index: Annotated[int, Field(ge=0)]
    audio_end_ms: Annotated[int, Field(ge=0)]


class ResponseCreate(ClientEvent):
    """Answer now."""

    type: Literal["response.create"]
    response: ResponseBody = ResponseBody()


class ResponseCancel(ClientEvent):
    """Stop answering."""

    type: Literal["response.cancel"]
    response_id: Named | None = None


class OutputAudioBufferClear(ClientEvent):
    """For WebRTC and SIP, whose sound the server plays."""

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
