"""Fields that chats and text completions accept and that have no effect."""

from sglang_omni.protocol.compat.conversions import ignore
from sglang_omni.protocol.compat.reasons import (
    AUTOMATIC_CACHE,
    BOTH_ENGINES,
    GATEWAYS,
    NO_DETOKENIZER,
    NO_SEARCH,
    NO_TOKEN_STOPS,
    NOT_STORED,
    ONE_SERVER,
    SGLANG,
    VLLM,
)

ENGINE_FIELDS = (
    *ignore(BOTH_ENGINES, NO_TOKEN_STOPS, stop_token_ids=[], ignore_eos=False),
    *ignore(SGLANG, NO_TOKEN_STOPS, stop_regex="", no_stop_trim=False),
    *ignore(BOTH_ENGINES, "an answer may always be short", min_tokens=0, min_new_tokens=0),
    *ignore(
        *(BOTH_ENGINES, NO_DETOKENIZER),
        skip_special_tokens=True,
        spaces_between_special_tokens=True,
    ),
    *ignore(VLLM, "the stop string is left out", include_stop_str_in_output=False),
    *ignore(
        *(VLLM, "there is no beam search"),
        use_beam_search=False,
        length_penalty=1.0,
        early_stopping=False,
    ),
    *ignore(VLLM, "the whole prompt is used", "truncate_prompt_tokens"),
    *ignore(
        *(BOTH_ENGINES, "answers have texts, not token ids or states"),
        return_hidden_states=False,
        return_routed_experts=False,
        return_token_ids=False,
        return_tokens_as_token_ids=False,
    ),
    *ignore(VLLM, "grammars have one back end", "guided_decoding_backend"),
    *ignore(VLLM, "grammars have one form of whitespace", "guided_whitespace_pattern"),
    *ignore(SGLANG, "requests cannot bring code", "custom_params"),
    *ignore(BOTH_ENGINES, "X-Request-Id names a request", "request_id", "rid"),
    *ignore(VLLM, AUTOMATIC_CACHE, "cache_salt"),
    *ignore(SGLANG, AUTOMATIC_CACHE, "extra_key", "session_params"),
)
GATEWAY_FIELDS = (
    *ignore(
        *(BOTH_ENGINES, ONE_SERVER),
        *("kv_transfer_params", "vllm_xargs", "data_parallel_rank", "routed_dp_rank"),
        *("bootstrap_host", "bootstrap_port", "bootstrap_room"),
    ),
    # OpenRouter and programs written for it.
    *ignore(GATEWAYS, ONE_SERVER, "provider", "models", "route", "transforms", "plugins"),
    *ignore(GATEWAYS, "answers have their usage anyway", "usage"),
    # litellm
    *ignore(
        *(GATEWAYS, NOT_STORED),
        *("litellm_session_id", "litellm_trace_id", "litellm_metadata", "tags"),
    ),
    *ignore(GATEWAYS, ONE_SERVER, "fallbacks", "num_retries", "drop_params"),
    *ignore(GATEWAYS, AUTOMATIC_CACHE, "cache", "caching", "enabledContextCaching"),
    # Open WebUI
    *ignore(
        *(GATEWAYS, NOT_STORED),
        *("chat_id", "session_id", "id", "message_id", "features", "variables"),
        *("model_item", "background_tasks", "tool_ids", "tool_servers", "params"),
    ),
    # LobeChat and new-api
    *ignore(GATEWAYS, NO_SEARCH, "enabledSearch", "enable_search", "web_search", "search_options"),
    *ignore(GATEWAYS, "there is one API", "apiMode"),
    *ignore(GATEWAYS, "reasoning has no limit of its own", "thinking_budget", "thinkingBudget"),
    # Programs for llama.cpp and Ollama
    *ignore(GATEWAYS, "the operator chooses the context length", "num_ctx"),
    *ignore(GATEWAYS, "the model stays loaded", "keep_alive"),
    *ignore(GATEWAYS, AUTOMATIC_CACHE, cache_prompt=True),
    *ignore(
        *(GATEWAYS, "the thinker has no such sampler"),
        mirostat=0,
        mirostat_tau=5.0,
        mirostat_eta=0.1,
        tfs_z=1.0,
        tfs=1,
        typical_p=1,
        top_a=0,
        repeat_last_n=64,
    ),
)
