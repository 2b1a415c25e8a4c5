"""The settings of a session: what holds until the next `session.update`."""

from dataclasses import dataclass, replace
from typing import Any, Literal

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.http.audio_output import choose_voice, require_model
from sglang_omni.entrypoints.http.tool_choice import check_tool_choice
from sglang_omni.entrypoints.realtime.audio_codec import PCM, WireFormat
from sglang_omni.entrypoints.realtime.session_schema import (
    Answering,
    FunctionTool,
    ResponseBody,
    ServerVad,
    SessionAudioInput,
    SessionAudioOutput,
    SessionBody,
    ToolChoiceBody,
    ToolChoiceFunction,
    Transcription,
    TurnDetection,
)
from sglang_omni.entrypoints.realtime.turn_detection import TurnRules, semantic_rules
from sglang_omni.models.capabilities import Capabilities
from sglang_omni.models.ming.prompt.chat import DEFAULT_SYSTEM
from sglang_omni.models.ming.prompt.tools import Tool, ToolChoice
from sglang_omni.pipeline.transcribe import transcription_prompt
from sglang_omni.protocol.errors import InvalidRequest

Modality = Literal["audio", "text"]
JSON = dict[str, Any]
SERVER_VAD = ServerVad(type="server_vad")


@dataclass(frozen=True)
class AnswerConfig:
    """How answers are given. `max_tokens` None leaves the length to the server's own limit. `voice`
    is a preset, or one that `owner` has stored; it speaks at `speed` times its own."""

    voice: str
    owner: str | None = None
    modality: Modality = "audio"
    instructions: str = DEFAULT_SYSTEM
    format: WireFormat = PCM
    speed: float = 1.0
    max_tokens: int | None = None
    tools: tuple[FunctionTool, ...] = ()
    tool_choice: ToolChoiceBody = "auto"
    parallel_calls: bool = True

    @property
    def callable_tools(self) -> tuple[Tool, ...]:
        """The functions that the model is told of."""
        if self.tool_choice == "none":
            return ()
        return tuple(
            Tool(tool.name, tool.description, tool.parameters, bool(tool.strict))
            for tool in self.tools
        )

    @property
    def calling(self) -> ToolChoice:
        """Which of them an answer calls."""
        if isinstance(self.tool_choice, ToolChoiceFunction):
            return ToolChoice(forced=True, only=(self.tool_choice.name,), parallel=False)
        return ToolChoice(forced=self.tool_choice == "required", parallel=self.parallel_calls)

    def json(self) -> JSON:
        """The fields that a session and a response share."""
        return {
            "output_modalities": [self.modality],
            "instructions": self.instructions,
            "max_output_tokens": self.max_tokens or "inf",
            "tools": [tool.model_dump(exclude_none=True) for tool in self.tools],
            "tool_choice": _choice_json(self.tool_choice),
            "parallel_tool_calls": self.parallel_calls,
        }


@dataclass(frozen=True)
class SessionConfig:
    """A session's settings. `drops_oldest`: what no longer fits the context is left out."""

    model: str
    answers: AnswerConfig
    input_format: WireFormat = PCM
    turns: TurnDetection | None = SERVER_VAD
    transcription: Transcription | None = None
    drops_oldest: bool = True

    def json(self) -> JSON:
        """The session object, as far as it is configured."""
        answers = self.answers
        return {
            "type": "realtime",
            "object": "realtime.session",
            "model": self.model,
            **answers.json(),
            "audio": {
                "input": {
                    "format": self.input_format.json(),
                    "noise_reduction": None,
                    "transcription": self._transcription_json(),
                    "turn_detection": self.turns.model_dump() if self.turns else None,
                },
                "output": {
                    "format": answers.format.json(),
                    "voice": answers.voice,
                    "speed": answers.speed,
                },
            },
            "truncation": "auto" if self.drops_oldest else "disabled",
            "tracing": None,
            "include": None,
            "prompt": None,
        }

    def _transcription_json(self) -> JSON | None:
        if self.transcription is None:
            return None
        return {**self.transcription.model_dump(), "model": self.model}


def turn_rules(turns: TurnDetection, most_ms: int) -> TurnRules:
    """The policy that a `turn_detection` asks for; a turn is cut at `most_ms`."""
    if not isinstance(turns, ServerVad):
        return replace(semantic_rules(turns.eagerness), most_ms=most_ms)
    return TurnRules(
        threshold=turns.threshold,
        prefix_ms=turns.prefix_padding_ms,
        silence_ms=turns.silence_duration_ms,
        short_silence_ms=turns.silence_duration_ms,
        most_ms=most_ms,
    )


def updated(config: SessionConfig, body: SessionBody, backend: Backend) -> SessionConfig:
    """The settings after a `session.update`. Raises `InvalidRequest`, naming the field."""
    if body.model is not None:
        require_model(body.model, backend)
    if body.include:
        raise _unsupported("session.include", "log probabilities of transcripts are not computed")
    audio = body.audio
    output = audio.output if audio else None
    answers = answering(config.answers, body, output, backend, "session")
    config = replace(config, answers=answers)
    if body.truncation is not None:
        config = replace(config, drops_oldest=_drops_oldest(body.truncation))
    if audio and audio.input:
        return _hearing(config, audio.input, backend.capabilities)
    return config


def for_response(config: SessionConfig, body: ResponseBody, backend: Backend) -> AnswerConfig:
    """The settings of one response. Raises `InvalidRequest`, naming the field."""
    output = body.audio.output if body.audio else None
    return answering(config.answers, body, output, backend, "response")


def answering(
    config: AnswerConfig,
    body: Answering,
    output: SessionAudioOutput | None,
    backend: Backend,
    prefix: str,
) -> AnswerConfig:
    """What `body` says about answers, over `config`. Raises `InvalidRequest`."""
    for name in ("prompt", "reasoning"):
        if getattr(body, name) is not None:
            raise _unsupported(f"{prefix}.{name}", "this server has none")
    changes: JSON = {}
    if body.output_modalities is not None:
        changes["modality"] = body.output_modalities[0]
    if body.instructions is not None:
        changes["instructions"] = body.instructions
    if body.max_output_tokens is not None:
        limit = body.max_output_tokens
        changes["max_tokens"] = None if limit == "inf" else limit
    if body.tools is not None:
        changes["tools"] = tuple(body.tools)
    if body.tool_choice is not None:
        changes["tool_choice"] = body.tool_choice
    if body.parallel_tool_calls is not None:
        changes["parallel_calls"] = body.parallel_tool_calls
    if output is not None:
        changes |= _speaking(output, backend, config.owner, f"{prefix}.audio.output")
    answers = replace(config, **changes)
    check_tool_choice(answers.callable_tools, answers.calling, backend, f"{prefix}.")
    return answers


def _choice_json(choice: ToolChoiceBody) -> Any:
    return choice.model_dump() if isinstance(choice, ToolChoiceFunction) else choice


def _speaking(output: SessionAudioOutput, backend: Backend, owner: str | None, prefix: str) -> JSON:
    changes: JSON = {}
    if output.speed is not None:
        changes["speed"] = output.speed
    if output.voice is not None:
        choose_voice(output.voice, None, backend, f"{prefix}.voice", owner)
        changes["voice"] = output.voice
    if output.format is not None:
        changes["format"] = WireFormat(output.format.type)
    return changes


def _hearing(
    config: SessionConfig, body: SessionAudioInput, capabilities: Capabilities
) -> SessionConfig:
    """A null turns detection or transcription off; what is absent stays."""
    changes: JSON = {}
    if body.noise_reduction is not None:
        place = "session.audio.input.noise_reduction"
        raise _unsupported(place, "this server does not reduce noise; send null")
    if body.format is not None:
        changes["input_format"] = WireFormat(body.format.type)
    if "turn_detection" in body.model_fields_set:
        changes["turns"] = body.turn_detection
    if "transcription" in body.model_fields_set:
        changes["transcription"] = _transcription(body.transcription, capabilities)
    return replace(config, **changes)


def _transcription(
    wanted: Transcription | None, capabilities: Capabilities
) -> Transcription | None:
    """The same, once it is known to be possible. Raises `InvalidRequest`, naming the field."""
    if wanted is not None:
        place = "session.audio.input.transcription."
        transcription_prompt(capabilities, wanted.language, wanted.prompt, place)
    return wanted


def _drops_oldest(truncation: Any) -> bool:
    if truncation not in ("auto", "disabled"):
        raise _unsupported("session.truncation", "this server knows 'auto' and 'disabled'")
    return truncation == "auto"


def _unsupported(param: str, reason: str) -> InvalidRequest:
    return InvalidRequest(f"{param}: {reason}", param=param)
