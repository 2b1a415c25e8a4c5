"""Settings of a session and of a response as clients write them, field by field.

Every object refuses fields it does not know, so that nothing is taken in and then forgotten. A
field that is null counts as absent, except where null itself says something.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from sglang_omni.entrypoints.realtime.item_schema import InputItem
from sglang_omni.protocol.body import (
    MAX_NAME,
    MAX_PARTS,
    MAX_TOOLS,
    Body,
    VoiceName,
)
from sglang_omni.protocol.functions import Parameters

MOST_TOKENS = 4096
Milliseconds = Annotated[int, Field(ge=0, le=60_000)]


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


class SessionAudioInput(Nullable):
    """What the client sends."""

    format: Format | None = None
    noise_reduction: Any = None
    transcription: Transcription | None = None
    turn_detection: TurnDetection | None = None


class SessionAudioOutput(Body):
    """What the client gets."""

    format: Format | None = None
    voice: VoiceName | None = None
    speed: Annotated[float, Field(ge=0.25, le=1.5)] | None = None


class SessionAudio(Body):
    """Both directions."""

    input: SessionAudioInput | None = None
    output: SessionAudioOutput | None = None


class FunctionTool(Body):
    """A function that the model may call; `parameters` is a JSON schema of an object. Calls keep to
    it if it is `strict`, and wherever they are forced."""

    type: Literal["function"]
    name: Annotated[str, Field(min_length=1, max_length=64)]
    description: str = ""
    parameters: Parameters = Field(default={})
    strict: bool | None = None


class ToolChoiceFunction(Body):
    """Call this function, once."""

    type: Literal["function"]
    name: Annotated[str, Field(max_length=MAX_NAME)]


ToolChoiceBody = Literal["auto", "none", "required"] | ToolChoiceFunction
Modalities = Annotated[list[Literal["text", "audio"]], Field(min_length=1, max_length=1)]
TokenLimit = Annotated[int, Field(ge=1, le=MOST_TOKENS)] | Literal["inf"]


class Answering(Body):
    """What holds for a session and may be said again for one response."""

    output_modalities: Modalities | None = None
    instructions: str | None = None
    max_output_tokens: TokenLimit | None = None
    tools: Annotated[list[FunctionTool], Field(max_length=MAX_TOOLS, fail_fast=True)] | None = None
    tool_choice: ToolChoiceBody | None = None
    parallel_tool_calls: bool | None = None
    prompt: Any = None
    reasoning: Any = None


class SessionBody(Answering):
    """The `session` of `session.update`."""

    type: Literal["realtime"] = "realtime"
    model: str | None = None
    audio: SessionAudio | None = None
    include: Annotated[list[str], Field(max_length=64, fail_fast=True)] | None = None
    tracing: Any = None
    truncation: Any = None


class ResponseAudio(Body):
    """How one response shall sound."""

    output: SessionAudioOutput | None = None


class ResponseBody(Answering):
    """The `response` of `response.create`: what differs from the session, and which context.

    `conversation` "none" keeps the response out of the conversation; `input` takes the place of
    the conversation as its context.
    """

    conversation: Literal["auto", "none"] = "auto"
    input: Annotated[list[InputItem], Field(max_length=MAX_PARTS, fail_fast=True)] | None = None
    metadata: Annotated[
        dict[Annotated[str, Field(max_length=MAX_NAME)], Annotated[str, Field(max_length=MAX_NAME)]]
        | None,
        Field(max_length=16),
    ] = None
    audio: ResponseAudio | None = None
