"""Rules for the bodies of the speech routes."""

from collections.abc import Mapping
from typing import Any

from sglang_omni.protocol.compat.conversions import (
    convert_priority,
    drop_flag,
    ignore,
    join_names,
    make_error,
    merge_object,
    rename,
)
from sglang_omni.protocol.compat.field_rules import (
    Change,
    FieldRules,
    Fields,
    Mapped,
    Refused,
    Rule,
    list_own_names,
)
from sglang_omni.protocol.compat.reasons import (
    BOTH_PEERS,
    GATEWAYS,
    NO_USERS,
    NOT_STORED,
    ONE_SERVER,
    OPENAI,
    SGLANG_OMNI,
    TALKER_IS_CONTINUOUS,
    VLLM,
    VLLM_OMNI,
)
from sglang_omni.protocol.compat.references import convert_ref_audio, convert_references
from sglang_omni.protocol.speech import NormalizeBody, SpeechBody, SpeechOptions, TurnBody

_LANGUAGES = {"english": "en", "chinese": "zh", "mandarin": "zh"}
_NO_LANGUAGE = ("", "auto")
# The fields of the talker's noise, which the peers' stages have under the same names.
_NOISE = ("cfg", "sigma", "temperature")
_TASKS = ("Base", "CustomVoice", "VoiceDesign")


def convert_language(value: Any, fields: Fields) -> Change:
    """Convert the name of a language, or a code with a region, to its code."""
    if not isinstance(value, str):
        return Change({"language": value})
    name = value.strip().lower()
    if name in _NO_LANGUAGE:
        return Change()
    code = name.replace("_", "-").partition("-")[0]
    return Change({"language": _LANGUAGES.get(name, code if code in ("en", "zh") else value)})


def convert_task_type(value: Any, fields: Fields) -> Change:
    """Convert the kind of the voice, which other fields say as well."""
    if value not in _TASKS:
        raise make_error("task_type", f"must be one of {', '.join(_TASKS)}")
    if value == "VoiceDesign":
        raise make_error("task_type", "this server designs no voices; choose one, or clone one")
    has_recording = any(fields.get(name) for name in ("ref_audio", "references"))
    if value == "Base" and not has_recording:
        raise make_error("task_type", "'Base' clones a voice and requires ref_audio")
    return Change()


def convert_stage_params(value: Any, fields: Fields) -> Change:
    """Convert sglang-omni's parameters of a stage: those of the talker's noise are taken."""
    if not isinstance(value, Mapping):
        raise make_error("stage_params", "must be a JSON object")
    taken: dict[str, Any] = {}
    ignored: list[str] = []
    for stage, params in value.items():
        given = params if isinstance(params, Mapping) else {stage: params}
        rest = [name for name in given if name not in _NOISE]
        taken |= {name: given[name] for name in _NOISE if name in given and name not in fields}
        ignored += join_names("stage_params", [stage] if rest else [])
    return Change(taken, tuple(ignored))


def convert_granularities(value: Any, fields: Fields) -> Change:
    """Convert the list of transcriptions: words come with their segments."""
    name = "timestamp_granularities"
    kinds = [value] if isinstance(value, str) else value
    if not isinstance(kinds, list) or not all(kind in ("word", "segment") for kind in kinds):
        raise make_error(name, "must be a list of 'word' and 'segment'")
    if not kinds:
        return Change()
    return rename(name, "timestamps")("word" if "word" in kinds else "segment", fields)


def convert_response_format(value: Any, fields: Fields) -> Change:
    """Convert the name of the format in which transcriptions have times."""
    if value == "verbose_json":
        return Change({"verbose": True})
    return Change({"response_format": value})


_VOICE = (
    Mapped("speaker", BOTH_PEERS, "`voice`", rename("speaker", "voice")),
    Mapped("language", BOTH_PEERS, "`en` or `zh` for names and regions", convert_language),
    Mapped(
        "references",
        SGLANG_OMNI,
        "`ref_audio` and `ref_text`, if it has one entry",
        convert_references,
    ),
    Mapped("ref_audio", BOTH_PEERS, "its `data` or `url`, if it is an object", convert_ref_audio),
)
_MAPPED = (
    Mapped("extra_body", GATEWAYS, "fields of the body", merge_object("extra_body")),
    Mapped("extra_params", VLLM_OMNI, "fields of the body", merge_object("extra_params")),
    Mapped(
        "timestamp_granularities",
        OPENAI,
        "`timestamps`: the finest of the list, as in transcriptions",
        convert_granularities,
    ),
    Mapped("priority", VLLM, "high below 0, low above, if it is a number", convert_priority),
    Mapped(
        "non_streaming_mode",
        VLLM_OMNI,
        "what is done anyway: the text is split as it is spoken",
        drop_flag("non_streaming_mode"),
    ),
    Mapped(
        "task_type",
        BOTH_PEERS,
        "what the fields of the voice say; VoiceDesign is refused",
        convert_task_type,
    ),
    *_VOICE,
    Mapped("stage_params", SGLANG_OMNI, "`cfg`, `sigma`, `temperature`", convert_stage_params),
)
_REFUSED = (
    Refused("speaker_embedding", VLLM_OMNI, "a voice is cloned of a recording; send ref_audio"),
    Refused("vq_codes", SGLANG_OMNI, "a voice is cloned of a recording; send ref_audio"),
)
_IGNORED = (
    *ignore(
        *(BOTH_PEERS, TALKER_IS_CONTINUOUS),
        *("top_p", "top_k", "min_p", "repetition_penalty", "sampling_params_list"),
    ),
    *ignore(
        *(BOTH_PEERS, "max_seconds limits the length, which follows the text"),
        *("max_new_tokens", "max_tokens", "token_count", "duration_tokens"),
    ),
    *ignore(
        *(BOTH_PEERS, "the server chooses the size of chunks"),
        *("initial_codec_chunk_frames", "codec_chunk_frames"),
    ),
    *ignore(BOTH_PEERS, "ref_text is used where it is given", x_vector_only_mode=False),
    *ignore(SGLANG_OMNI, "answers have audio", stream_codec_output=False),
    *ignore(SGLANG_OMNI, "no silence is added", "suppress_bootstrap_silence"),
    *ignore(VLLM, "X-Request-Id names a request", "request_id"),
    *ignore(GATEWAYS, NO_USERS, "user"),
    *ignore(GATEWAYS, NOT_STORED, "metadata", "litellm_session_id", "litellm_trace_id", "tags"),
    *ignore(GATEWAYS, ONE_SERVER, "fallbacks", "num_retries", "drop_params"),
)
_RULES: tuple[Rule, ...] = (*_MAPPED, *_REFUSED, *_IGNORED)

_VERBOSE_JSON = Mapped(
    "response_format",
    OPENAI,
    "`verbose` for `verbose_json`, as in transcriptions",
    convert_response_format,
)
_NO_STREAM = Refused("stream", BOTH_PEERS, "a batch has whole files", (False,))
TURN_RULES = FieldRules(
    list_own_names(TurnBody),
    (*_VOICE, Mapped("input", OPENAI, "`text`", rename("input", "text"))),
)
_TURNS = {"input": TURN_RULES}
SPEECH_RULES = FieldRules(list_own_names(SpeechBody), (*_RULES, _VERBOSE_JSON), _TURNS)
ITEM_RULES = FieldRules(list_own_names(SpeechOptions) | {"input"}, (*_RULES, _NO_STREAM), _TURNS)
NORMALIZE_RULES = FieldRules(list_own_names(NormalizeBody), ())
# The route converts each item by itself, so that an invalid one does not fail the others.
BATCH_RULES = FieldRules(list_own_names(SpeechOptions) | {"model", "items"}, (*_RULES, _NO_STREAM))
