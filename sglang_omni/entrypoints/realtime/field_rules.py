"""Rules for fields of `session.update` and `response.create` that other programs send."""

from typing import Any

from sglang_omni.entrypoints.realtime.beta import nest_settings
from sglang_omni.entrypoints.realtime.session_schema import (
    FunctionTool,
    ResponseAudio,
    ResponseBody,
    SessionAudio,
    SessionAudioInput,
    SessionAudioOutput,
    SessionBody,
    Transcription,
)
from sglang_omni.protocol.compat.conversions import ignore
from sglang_omni.protocol.compat.field_rules import (
    Change,
    FieldRules,
    Fields,
    Ignored,
    Mapped,
    list_own_names,
)
from sglang_omni.protocol.compat.reasons import GATEWAYS, NO_USERS, NOT_STORED, OPENAI
from sglang_omni.protocol.compat.transcription import LANGUAGES

# Settings that the beta version has at the top, which some programs send in the current one.
_FLAT_NAMES = frozenset(
    {
        *("modalities", "voice", "speed", "temperature", "turn_detection"),
        *("input_audio_format", "input_audio_transcription", "input_audio_noise_reduction"),
        *("output_audio_format", "max_response_output_tokens"),
    }
)


def nest_flat_settings(settings: Fields) -> Fields:
    """Return settings of the beta version in the form of the current one."""
    is_flat = "audio" not in settings and not _FLAT_NAMES.isdisjoint(settings)
    return nest_settings(dict(settings)) if is_flat else settings


def convert_truncation(value: Any, fields: Fields) -> Change:
    """Convert a ratio of what is kept: this server leaves out the oldest items one by one."""
    is_ratio = isinstance(value, dict) and value.get("type") == "retention_ratio"
    if not is_ratio:
        return Change({"truncation": value})
    return Change({"truncation": "auto"}, ("truncation.retention_ratio",))


_REASONING = Ignored("reasoning", OPENAI, "spoken answers come without reasoning")
_OUTPUT = FieldRules(list_own_names(SessionAudioOutput))
_TOOLS = FieldRules(list_own_names(FunctionTool))
_TRANSCRIPTION = FieldRules(
    list_own_names(Transcription),
    (*LANGUAGES, *ignore(OPENAI, "a transcript comes when its turn has ended", "delay")),
)
SESSION_RULES = FieldRules(
    own=list_own_names(SessionBody),
    rules=(
        _REASONING,
        Ignored("tracing", OPENAI, "traces are the operator's: see otlp_endpoint"),
        Ignored("include", OPENAI, "log probabilities of transcripts are not known", ([],)),
        Mapped("truncation", OPENAI, "`auto` for a retention ratio", convert_truncation),
        *ignore(OPENAI, NO_USERS, "safety_identifier"),
        *ignore(OPENAI, "the server sets it", "id", "object", "expires_at", "client_secret"),
        *ignore(GATEWAYS, NOT_STORED, "metadata"),
    ),
    nested={
        "tools": _TOOLS,
        "audio": FieldRules(
            own=list_own_names(SessionAudio),
            nested={
                "input": FieldRules(
                    own=list_own_names(SessionAudioInput),
                    rules=(Ignored("noise_reduction", OPENAI, "the server reduces no noise"),),
                    nested={"transcription": _TRANSCRIPTION},
                ),
                "output": _OUTPUT,
            },
        ),
    },
    rewrite=nest_flat_settings,
)
RESPONSE_RULES = FieldRules(
    own=list_own_names(ResponseBody),
    rules=(_REASONING,),
    nested={
        "tools": _TOOLS,
        "audio": FieldRules(list_own_names(ResponseAudio), nested={"output": _OUTPUT}),
    },
    rewrite=nest_flat_settings,
)
# The rules of a client's event. Errors name paths from the event on.
EVENT_RULES = FieldRules(
    own=frozenset({"type", "event_id", "session", "response"}),
    nested={"session": SESSION_RULES, "response": RESPONSE_RULES},
)
