"""Schemas of the settings of a session and of a response.

Unknown fields are rejected, so that no field is silently ignored. A null counts as absent, except
where null has a meaning of its own.
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

MAX_OUTPUT_TOKENS = 4096
SessionType = Literal["realtime", "transcription"]
Milliseconds = Annotated[int, Field(ge=0, le=60_000)]


class NullableBody(BaseModel):
    """Like `Body`, but a null disables the setting."""

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
    """Ends a turn after a fixed silence."""

    type: Literal["server_vad"]
    threshold: Annotated[float, Field(ge=0, le=1)] = 0.5
    prefix_padding_ms: Milliseconds = 300
    silence_duration_ms: Milliseconds = 500
    idle_timeout_ms: Annotated[int | None, Field(ge=5000, le=30_000)] = None
    create_response: bool = True
    interrupt_response: bool = True


class SemanticVad(Body):
    """Ends a turn after a silence that depends on the length of the speech."""

    type: Literal["semantic_vad"]
    eagerness: Literal["low", "medium", "high", "auto"] = "auto"
    create_response: bool = True
    interrupt_response: bool = True


TurnDetection = Annotated[ServerVad | SemanticVad, Field(discriminator="type")]


class Transcription(Body):
    """Transcribes the user's speech.

    The served model does it, whatever `model` names; `session.updated` shows its name.
    """

    model: str | None = None
    language: Annotated[str | None, Field(max_length=32)] = None
    prompt: Annotated[str | None, Field(max_length=1024)] = None


class SessionAudioInput(NullableBody):
    """Settings of the client's audio."""

    format: Format | None = None
    transcription: Transcription | None = None
    turn_detection: TurnDetection | None = None


class SessionAudioOutput(Body):
    """Settings of the audio for the client."""

    format: Format | None = None
    voice: VoiceName | None = None
    speed: Annotated[float, Field(ge=0.25, le=1.5)] | None = None


class SessionAudio(Body):
    """Audio settings of both directions."""

    input: SessionAudioInput | None = None
    output: SessionAudioOutput | None = None


class FunctionTool(Body):
    """A function that the model may call; `parameters` is a JSON schema of an object.

    Calls conform to it if `strict` is set, and if the tool choice forces a call.
    """

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
TokenLimit = Annotated[int, Field(ge=1, le=MAX_OUTPUT_TOKENS)] | Literal["inf"]


class AnswerBody(Body):
    """Settings of a session that one response may override."""

    output_modalities: Modalities | None = None
    instructions: str | None = None
    max_output_tokens: TokenLimit | None = None
    tools: Annotated[list[FunctionTool], Field(max_length=MAX_TOOLS, fail_fast=True)] | None = None
    tool_choice: ToolChoiceBody | None = None
    parallel_tool_calls: bool | None = None
    prompt: Any = None


class SessionBody(AnswerBody):
    """The `session` of `session.update`.

    A session of type `transcription` writes down each turn and answers none. Without `type` it
    stays as it is.
    """

    type: SessionType | None = None
    model: str | None = None
    audio: SessionAudio | None = None
    truncation: Any = None


class ResponseAudio(Body):
    """Audio settings of one response."""

    output: SessionAudioOutput | None = None


class ResponseBody(AnswerBody):
    """The `response` of `response.create`: its context, and settings that override the session's.

    `conversation` "none" keeps the response out of the conversation; `input` replaces the
    conversation as its context.
    """

    conversation: Literal["auto", "none"] = "auto"
    input: Annotated[list[InputItem], Field(max_length=MAX_PARTS, fail_fast=True)] | None = None
    metadata: Annotated[
        dict[Annotated[str, Field(max_length=MAX_NAME)], Annotated[str, Field(max_length=MAX_NAME)]]
        | None,
        Field(max_length=16),
    ] = None
    audio: ResponseAudio | None = None
