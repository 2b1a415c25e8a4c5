"""What clients may send, field by field: the events and the objects in them.

Every object refuses fields it does not know, so that nothing is taken in and then forgotten. A
field that is null counts as absent, except where null itself says something.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, TypeAdapter

from sglang_omni.api.schema import Body, VoiceName

MOST_TOKENS = 4096
Milliseconds = Annotated[int, Field(ge=0, le=60_000)]
Id = Annotated[str, Field(min_length=1, max_length=64)]


class Nullable(BaseModel):
    """As `Body`, but null is a value: "none of this"."""

    model_config = Body.model_config


class PcmFormat(Body):
    """16-bit little-endian samples."""

    type: Literal["audio/pcm"]
    rate: Literal[24_000] = 24_000


class G711Format(Body):
    """G.711 at 8 kHz, mu-law (`pcmu`) or A-law (`pcma`)."""

    type: Literal["audio/pcmu", "audio/pcma"]


Format = Annotated[PcmFormat | G711Format, Field(discriminator="type")]


class ServerVad(Body):
    """Turns end after a fixed silence."""

    type: Literal["server_vad"]
    threshold: Annotated[float, Field(ge=0, le=1)] = 0.5
    prefix_padding_ms: Milliseconds = 300
    silence_duration_ms: Milliseconds = 500
    idle_timeout_ms: Annotated[int | None, Field(ge=5000, le=30_000)] = None
    create_response: bool = True
    interrupt_response: bool = True


class SemanticVad(Body):
    """Turns end after a silence that depends on how much was said; `realtime/turns.py`."""

    type: Literal["semantic_vad"]
    eagerness: Literal["low", "medium", "high", "auto"] = "auto"
    create_response: bool = True
    interrupt_response: bool = True


TurnDetection = Annotated[ServerVad | SemanticVad, Field(discriminator="type")]


class Transcription(Body):
    """Whether what the user says is written down as well. Always by the served model, whatever
    `model` names; `session.updated` says so."""

    model: str | None = None
    language: Annotated[str | None, Field(max_length=32)] = None
    prompt: Annotated[str | None, Field(max_length=1024)] = None


class AudioInput(Nullable):
    """What the client sends."""

    format: Format | None = None
    noise_reduction: Any = None
    transcription: Transcription | None = None
    turn_detection: TurnDetection | None = None


class AudioOutput(Body):
    """What the client gets."""

    format: Format | None = None
    voice: VoiceName | None = None
    speed: Annotated[float, Field(ge=0.25, le=1.5)] | None = None


class AudioConfig(Body):
    """Both directions."""

    input: AudioInput | None = None
    output: AudioOutput | None = None


class FunctionTool(Body):
    """A function that the model may call; `parameters` is a JSON schema."""

    type: Literal["function"]
    name: Annotated[str, Field(min_length=1, max_length=64)]
    description: str = ""
    parameters: dict[str, Any] = Field(default={})
    strict: bool | None = None


class ToolChoiceFunction(Body):
    """Call this function."""

    type: Literal["function"]
    name: str


ToolChoice = Literal["auto", "none", "required"] | ToolChoiceFunction
Modalities = Annotated[list[Literal["text", "audio"]], Field(min_length=1, max_length=1)]
TokenLimit = Annotated[int, Field(ge=1, le=MOST_TOKENS)] | Literal["inf"]


class Answering(Body):
    """What holds for a session and may be said again for one response."""

    output_modalities: Modalities | None = None
    instructions: str | None = None
    max_output_tokens: TokenLimit | None = None
    tools: list[FunctionTool] | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    prompt: Any = None
    reasoning: Any = None


class SessionBody(Answering):
    """The `session` of `session.update`."""

    type: Literal["realtime"] = "realtime"
    model: str | None = None
    audio: AudioConfig | None = None
    include: list[str] | None = None
    tracing: Any = None
    truncation: Any = None


class InputText(Body):
    """Text of a user or of the system."""

    type: Literal["input_text"]
    text: str


class InputAudio(Body):
    """Speech of a user, in base64 of the session's input format."""

    type: Literal["input_audio"]
    audio: str | None = None
    transcript: str | None = None


class InputImage(Body):
    """A picture, as a data URI or a URL."""

    type: Literal["input_image"]
    image_url: Annotated[str, Field(min_length=1)]
    detail: Literal["auto", "low", "high"] = "auto"


class OutputText(Body):
    """Text of an assistant. `text` is the older name of the type."""

    type: Literal["output_text", "text"]
    text: str


class OutputAudio(Body):
    """Speech of an assistant, of which the transcript is kept."""

    type: Literal["output_audio", "audio"]
    transcript: str
    audio: str | None = None


PartBody = Annotated[
    InputText | InputAudio | InputImage | OutputText | OutputAudio, Field(discriminator="type")
]


class ItemBase(Body):
    """What every item may have."""

    id: Id | None = None
    object: Literal["realtime.item"] = "realtime.item"
    status: Literal["completed", "incomplete", "in_progress"] = "completed"


class MessageBody(ItemBase):
    """Something said, written or shown."""

    type: Literal["message"]
    role: Literal["system", "user", "assistant"]
    content: Annotated[list[PartBody], Field(min_length=1)]


class CallBody(ItemBase):
    """A function call that the model made before."""

    type: Literal["function_call"]
    name: str
    arguments: str
    call_id: Id | None = None


class CallOutputBody(ItemBase):
    """What a function returned."""

    type: Literal["function_call_output"]
    call_id: Id
    output: str


class ItemReference(Body):
    """An item of the conversation, named."""

    type: Literal["item_reference"]
    id: Id


ItemBody = Annotated[MessageBody | CallBody | CallOutputBody, Field(discriminator="type")]
InputItem = Annotated[
    MessageBody | CallBody | CallOutputBody | ItemReference, Field(discriminator="type")
]


class ResponseAudio(Body):
    """How one response shall sound."""

    output: AudioOutput | None = None


class ResponseBody(Answering):
    """The `response` of `response.create`: what differs from the session, and which context.

    `conversation` "none" keeps the response out of the conversation; `input` takes the place of
    the conversation as its context.
    """

    conversation: Literal["auto", "none"] = "auto"
    input: list[InputItem] | None = None
    metadata: Annotated[dict[str, str] | None, Field(max_length=16)] = None
    audio: ResponseAudio | None = None


class ClientEvent(Body):
    """What every event may have."""

    event_id: Annotated[str, Field(max_length=512)] | None = None


class SessionUpdate(ClientEvent):
    """Change the session; what is not named stays."""

    type: Literal["session.update"]
    session: SessionBody


class Append(ClientEvent):
    """More of what the user says."""

    type: Literal["input_audio_buffer.append"]
    audio: str


class Commit(ClientEvent):
    """What is in the buffer is the user's turn."""

    type: Literal["input_audio_buffer.commit"]


class Clear(ClientEvent):
    """Forget what is in the buffer."""

    type: Literal["input_audio_buffer.clear"]


class ItemCreate(ClientEvent):
    """Put an item into the conversation; behind `previous_item_id`, `root` for the beginning."""

    type: Literal["conversation.item.create"]
    item: ItemBody
    previous_item_id: str | None = None


class ItemDelete(ClientEvent):
    """Take an item out of the conversation."""

    type: Literal["conversation.item.delete"]
    item_id: str


class ItemRetrieve(ClientEvent):
    """Ask for an item with its sound."""

    type: Literal["conversation.item.retrieve"]
    item_id: str


class ItemTruncate(ClientEvent):
    """Only this much of a spoken answer was played."""

    type: Literal["conversation.item.truncate"]
    item_id: str
    content_index: Annotated[int, Field(ge=0)]
    audio_end_ms: Annotated[int, Field(ge=0)]


class ResponseCreate(ClientEvent):
    """Answer now."""

    type: Literal["response.create"]
    response: ResponseBody = ResponseBody()


class ResponseCancel(ClientEvent):
    """Stop answering."""

    type: Literal["response.cancel"]
    response_id: str | None = None


class OutputAudioClear(ClientEvent):
    """For WebRTC and SIP, whose sound the server plays."""

    type: Literal["output_audio_buffer.clear"]


Event = (
    SessionUpdate
    | Append
    | Commit
    | Clear
    | ItemCreate
    | ItemDelete
    | ItemRetrieve
    | ItemTruncate
    | ResponseCreate
    | ResponseCancel
    | OutputAudioClear
)
EVENTS: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="type")])
