"""Rules for the forms of `POST /v1/audio/transcriptions` and `/v1/audio/translations`."""

from sglang_omni.protocol.compat.conversions import convert_languages, ignore, rename
from sglang_omni.protocol.compat.field_rules import (
    FieldRules,
    Ignored,
    Mapped,
    Rule,
    list_own_names,
)
from sglang_omni.protocol.compat.reasons import (
    GATEWAYS,
    NO_USERS,
    NOT_STORED,
    OPENAI,
    VLLM,
)
from sglang_omni.protocol.transcription import ChunkingVad, TranscriptionForm, TranslationForm

_SPEAKERS = ("known_speaker_names", "known_speaker_references")

LANGUAGES: tuple[Rule, ...] = (
    Mapped("languages", OPENAI, "`language`, if it has one", convert_languages),
    Ignored("keywords", OPENAI, "prompt has the words to expect", ([],)),
)
_COMMON: tuple[Rule, ...] = (
    *ignore(
        *(VLLM, "transcripts are sampled by temperature alone"),
        *("top_p", "top_k", "min_p", "seed", "repetition_penalty"),
        *("frequency_penalty", "presence_penalty"),
    ),
    *ignore(VLLM, "the last event has the usage", "stream_include_usage"),
    *ignore(VLLM, "the last event has the usage", "stream_continuous_usage_stats"),
    *ignore(GATEWAYS, "recordings are always cut by voice activity", vad_filter="true"),
    *ignore(GATEWAYS, "the family does it as it was trained", "beam_size"),
    *ignore(GATEWAYS, "only verbose_json has times", "word_timestamps", "no_timestamps"),
    *ignore(GATEWAYS, "prompt has the words to expect", "hotwords"),
    *ignore(GATEWAYS, NO_USERS, "user"),
    *ignore(GATEWAYS, NOT_STORED, "metadata"),
)

TRANSCRIPTION_RULES = FieldRules(
    own=list_own_names(TranscriptionForm),
    rules=(
        *(
            Mapped(name, VLLM, "`max_tokens`", rename(name, "max_tokens"))
            for name in ("max_completion_tokens", "max_new_tokens")
        ),
        *LANGUAGES,
        *ignore(OPENAI, "the server does not tell speakers apart", *_SPEAKERS),
        *ignore(VLLM, "translations are made by /v1/audio/translations", "to_language"),
        *_COMMON,
    ),
    nested={"chunking_strategy": FieldRules(list_own_names(ChunkingVad))},
    lists=frozenset({"include", "timestamp_granularities", "languages", "keywords", *_SPEAKERS}),
    objects=frozenset({"chunking_strategy"}),
)

TRANSLATION_RULES = FieldRules(
    own=list_own_names(TranslationForm),
    rules=(
        *ignore(VLLM, "the model recognises the language of the recording", "language"),
        *ignore(VLLM, "translations are into English", to_language="en"),
        *ignore(VLLM, "translations come whole", stream="false"),
        *ignore(GATEWAYS, "only verbose_json has times", "timestamp_granularities"),
        *_COMMON,
    ),
    lists=frozenset({"timestamp_granularities"}),
)
