"""Fields of chats that are accepted and have no effect."""

from sglang_omni.protocol.compat.conversions import ignore
from sglang_omni.protocol.compat.reasons import (
    AUTOMATIC_CACHE,
    BOTH_ENGINES,
    BOTH_PEERS,
    FIXED_SIZES,
    NO_SEARCH,
    NO_USERS,
    NOT_STORED,
    OPENAI,
    SGLANG,
    SGLANG_OMNI,
    TALKER_IS_CONTINUOUS,
    VLLM,
)
from sglang_omni.protocol.compat.shared_ignored import ENGINE_FIELDS, GATEWAY_FIELDS

_OPENAI = (
    *ignore(OPENAI, NOT_STORED, store=False, metadata={}),
    *ignore(OPENAI, NO_USERS, "user", "safety_identifier"),
    *ignore(OPENAI, AUTOMATIC_CACHE, "prompt_cache_key", "prompt_cache_retention"),
    *ignore(OPENAI, "the prompt says how long an answer is", verbosity="medium"),
    *ignore(OPENAI, "it only makes answers faster", "prediction"),
    *ignore(OPENAI, NO_SEARCH, "web_search_options"),
)
_PEERS = (
    *ignore(
        *(BOTH_PEERS, FIXED_SIZES),
        *("video_min_pixels", "video_max_pixels", "video_total_pixels"),
    ),
    *ignore(
        *(SGLANG_OMNI, TALKER_IS_CONTINUOUS),
        *("talker_temperature", "talker_top_p", "talker_top_k", "talker_repetition_penalty"),
        "talker_max_new_tokens",
    ),
)
CHAT_ENGINE_FIELDS = (
    *ignore(VLLM, "there is no beam search", best_of=1),
    *ignore(
        *(BOTH_ENGINES, "the family sets the prompt's form"),
        add_generation_prompt=True,
        echo=False,
        add_special_tokens=False,
    ),
    *ignore(VLLM, "only an answer's log probabilities are known", "prompt_logprobs"),
    *ignore(
        *(SGLANG, "reasoning is always in reasoning_content"),
        separate_reasoning=True,
        stream_reasoning=True,
        include_reasoning=True,
    ),
)
IGNORED = (*_OPENAI, *_PEERS, *CHAT_ENGINE_FIELDS, *ENGINE_FIELDS, *GATEWAY_FIELDS)
