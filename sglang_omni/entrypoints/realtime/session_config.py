"""Holds the settings of a session, and applies `session.update` and `response.create` to them."""

from dataclasses import dataclass, replace
from typing import Any, Literal

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.realtime.audio_codec import PCM, WireFormat
from sglang_omni.entrypoints.realtime.session_schema import (
    AnswerBody,
    FunctionTool,
    ResponseBody,
    ServerVad,
    SessionAudioInput,
    SessionAudioOutput,
    SessionBody,
    SessionType,
    ToolChoiceBody,
    ToolChoiceFunction,
    Transcription,
    TurnDetection,
)
from sglang_omni.entrypoints.realtime.turn_detection import TurnRules, semantic_vad_rules
from sglang_omni.entrypoints.requests.metadata import require_model
from sglang_omni.entrypoints.requests.tool_choice import check_tool_choice
from sglang_omni.entrypoints.requests.voices import choose_voice
from sglang_omni.models.capabilities import Capabilities
from sglang_omni.pipeline.transcribe import build_transcription_prompt
from sglang_omni.protocol.errors import InvalidRequest
from sglang_omni.protocol.tools import Tool, ToolChoice

Modality = Literal["audio", "text"]
JSON = dict[str, Any]
SERVER_VAD = ServerVad(type="server_vad")


@dataclass(frozen=True)
class AnswerConfig:
    """Settings of the answers.

    Attributes:
        voice: A preset, or a voice that `owner` has stored.
        owner: Whose stored voices may be used.
        speed: Speed relative to the voice's own.
        max_tokens: Maximum length of an answer; None is the server's own limit.
    """

    voice: str
    instructions: str
    owner: str | None = None
    modality: Modality = "audio"
    format: WireFormat = PCM
    speed: float = 1.0
    max_tokens: int | None = None
    tools: tuple[FunctionTool, ...] = ()
    tool_choice: ToolChoiceBody = "auto"
    parallel_calls: bool = True

    @property
    def callable_tools(self) -> tuple[Tool, ...]:
        """Return the functions that the prompt lists."""
        if self.tool_choice == "none":
            return ()
        return tuple(
            Tool(tool.name, tool.description, tool.parameters, bool(tool.strict))
            for tool in self.tools
        )

    @property
    def model_tool_choice(self) -> ToolChoice:
        """Return the tool choice in the model's form."""
        if isinstance(self.tool_choice, ToolChoiceFunction):
            return ToolChoice(forced=True, only=(self.tool_choice.name,), parallel=False)
        return ToolChoice(forced=self.tool_choice == "required", parallel=self.parallel_calls)

    def to_json(self) -> JSON:
        """Return the fields that a session and a response share."""
        return {
            "output_modalities": [self.modality],
            "instructions": self.instructions,
            "max_output_tokens": self.max_tokens or "inf",
            "tools": [tool.model_dump(exclude_none=True) for tool in self.tools],
            "tool_choice": _tool_choice_to_json(self.tool_choice),
            "parallel_tool_calls": self.parallel_calls,
        }


@dataclass(frozen=True)
class SessionConfig:
    """Settings of a session.

    Attributes:
        drops_oldest: Whether the oldest items are left out once the context is full.
        type: Whether it answers turns, or only writes them down.
    """

    model: str
    answers: AnswerConfig
    input_format: WireFormat = PCM
    turn_detection: TurnDetection | None = SERVER_VAD
    transcription: Transcription | None = None
    drops_oldest: bool = True
    type: SessionType = "realtime"

    @property
    def answers_turns(self) -> bool:
        """Return whether a turn that was detected gets an answer without being asked for."""
        if self.type == "transcription" or self.turn_detection is None:
            return False
        return self.turn_detection.create_response

    def to_json(self) -> JSON:
        """Return the session object without its id."""
        if self.type == "transcription":
            return {
                "type": self.type,
                "object": "realtime.transcription_session",
                "audio": {"input": self._input_to_json()},
                "include": None,
            }
        answers = self.answers
        return {
            "type": self.type,
            "object": "realtime.session",
            "model": self.model,
            **answers.to_json(),
            "audio": {
                "input": self._input_to_json(),
                "output": {
                    "format": answers.format.to_json(),
                    "voice": answers.voice,
                    "speed": answers.speed,
                },
            },
            "truncation": "auto" if self.drops_oldest else "disabled",
            "tracing": None,
            "include": None,
            "prompt": None,
        }

    def _input_to_json(self) -> JSON:
        detection = self.turn_detection
        return {
            "format": self.input_format.to_json(),
            "noise_reduction": None,
            "transcription": self._transcription_to_json(),
            "turn_detection": detection.model_dump() if detection else None,
        }

    def _transcription_to_json(self) -> JSON | None:
        if self.transcription is None:
            return None
        return {**self.transcription.model_dump(), "model": self.model}


def build_turn_rules(turn_detection: TurnDetection, max_turn_ms: int) -> TurnRules:
    """Return the rules for a `turn_detection`; a turn ends at `max_turn_ms` at the latest."""
    if not isinstance(turn_detection, ServerVad):
        return replace(semantic_vad_rules(turn_detection.eagerness), max_turn_ms=max_turn_ms)
    return TurnRules(
        threshold=turn_detection.threshold,
        prefix_ms=turn_detection.prefix_padding_ms,
        silence_ms=turn_detection.silence_duration_ms,
        short_silence_ms=turn_detection.silence_duration_ms,
        max_turn_ms=max_turn_ms,
    )


def apply_update(config: SessionConfig, body: SessionBody, backend: Backend) -> SessionConfig:
    """Return the settings after a `session.update`.

    Raises:
        InvalidRequest: A setting is not supported; `param` names the field.
    """
    if body.model is not None:
        config = replace(config, model=require_model(body.model, backend))
    audio = body.audio
    output = audio.output if audio else None
    answers = _update_answers(config.answers, body, output, backend, "session")
    config = replace(config, answers=answers)
    if body.truncation is not None:
        config = replace(config, drops_oldest=_parse_truncation(body.truncation))
    if audio and audio.input:
        config = _update_audio_input(config, audio.input, backend.capabilities)
    return _update_type(config, body)


def build_transcription_session(config: SessionConfig) -> SessionConfig:
    """Return the settings of a session that writes down each turn and answers none."""
    transcription = config.transcription or Transcription()
    return replace(config, type="transcription", transcription=transcription)


def _update_type(config: SessionConfig, body: SessionBody) -> SessionConfig:
    """Return `config` with the type of `body`. Raises `InvalidRequest`."""
    if (body.type or config.type) == "realtime":
        return replace(config, type="realtime")
    for name in sorted(body.model_fields_set & AnswerBody.model_fields.keys()):
        if getattr(body, name) is not None:
            raise _unsupported(f"session.{name}", "a transcription session gives no answers")
    if body.audio and body.audio.output:
        raise _unsupported("session.audio.output", "a transcription session gives no answers")
    return build_transcription_session(config)


def configure_response(config: SessionConfig, body: ResponseBody, backend: Backend) -> AnswerConfig:
    """Return the settings of one response.

    Raises:
        InvalidRequest: A setting is not supported; `param` names the field.
    """
    output = body.audio.output if body.audio else None
    return _update_answers(config.answers, body, output, backend, "response")


def _update_answers(
    config: AnswerConfig,
    body: AnswerBody,
    output: SessionAudioOutput | None,
    backend: Backend,
    prefix: str,
) -> AnswerConfig:
    """Return `config` with the changes in `body`. Raises `InvalidRequest`."""
    if body.prompt is not None:
        raise _unsupported(f"{prefix}.prompt", "not supported by this server")
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
        changes |= _parse_audio_output(output, backend, config.owner, f"{prefix}.audio.output")
    answers = replace(config, **changes)
    check_tool_choice(answers.callable_tools, answers.model_tool_choice, backend, f"{prefix}.")
    return answers


def _tool_choice_to_json(choice: ToolChoiceBody) -> Any:
    return choice.model_dump() if isinstance(choice, ToolChoiceFunction) else choice


def _parse_audio_output(
    output: SessionAudioOutput, backend: Backend, owner: str | None, prefix: str
) -> JSON:
    changes: JSON = {}
    if output.speed is not None:
        changes["speed"] = output.speed
    if output.voice is not None:
        choose_voice(output.voice, None, backend, f"{prefix}.voice", owner)
        changes["voice"] = output.voice
    if output.format is not None:
        changes["format"] = WireFormat(output.format.type)
    return changes


def _update_audio_input(
    config: SessionConfig, body: SessionAudioInput, capabilities: Capabilities
) -> SessionConfig:
    """Return `config` with the changes in `body`.

    A null disables turn detection or transcription; absent fields keep their values.
    """
    changes: JSON = {}
    if body.format is not None:
        changes["input_format"] = WireFormat(body.format.type)
    if "turn_detection" in body.model_fields_set:
        changes["turn_detection"] = body.turn_detection
    if "transcription" in body.model_fields_set:
        if body.transcription is not None:
            _check_transcription(body.transcription, capabilities)
        changes["transcription"] = body.transcription
    return replace(config, **changes)


def _check_transcription(transcription: Transcription, capabilities: Capabilities) -> None:
    """Raise `InvalidRequest` if the checkpoint cannot make the transcription."""
    prefix = "session.audio.input.transcription."
    build_transcription_prompt(capabilities, transcription.language, transcription.prompt, prefix)


def _parse_truncation(truncation: Any) -> bool:
    if truncation not in ("auto", "disabled"):
        raise _unsupported("session.truncation", "must be 'auto' or 'disabled'")
    return truncation == "auto"


def _unsupported(param: str, reason: str) -> InvalidRequest:
    return InvalidRequest(f"{param}: {reason}", param=param)
