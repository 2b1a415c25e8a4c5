"""Rules for the options of a stream."""

from sglang_omni.protocol.compat.conversions import ignore
from sglang_omni.protocol.compat.field_rules import FieldRules, list_own_names
from sglang_omni.protocol.compat.reasons import OPENAI, VLLM
from sglang_omni.protocol.generation import StreamOptions

STREAM_OPTIONS_RULES = FieldRules(
    own=list_own_names(StreamOptions),
    rules=(
        *ignore(OPENAI, "chunks are not padded", include_obfuscation=False),
        *ignore(VLLM, "usage comes at the end", continuous_usage_stats=False),
    ),
)
