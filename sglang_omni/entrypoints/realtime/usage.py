"""What a response used, and what the session's key may still use, in the protocol's form."""

from typing import Any

from sglang_omni.admission.rate_limit.limiter import current_rate_limits
from sglang_omni.entrypoints.realtime.session_config import AnswerConfig
from sglang_omni.pipeline.request import Usage


def rate_limits_to_json() -> list[dict[str, Any]]:
    """Return the remaining rate limits of the session's key; empty without limits."""
    return [
        {
            "name": name,
            "limit": status.limit,
            "remaining": status.remaining,
            "reset_seconds": round(status.reset_s, 3),
        }
        for name, status in current_rate_limits().items()
    ]


def usage_to_json(usage: Usage, answers: AnswerConfig) -> dict[str, Any]:
    """Return token counts; output audio tokens are talker patches of 320 ms."""
    text_tokens, audio_tokens = usage.completion_tokens, usage.audio_tokens
    output_tokens = text_tokens + audio_tokens
    return {
        "total_tokens": usage.prompt_tokens + output_tokens,
        "input_tokens": usage.prompt_tokens,
        "output_tokens": output_tokens,
        "input_token_details": {"cached_tokens": usage.cached_tokens},
        "output_token_details": {"text_tokens": text_tokens, "audio_tokens": audio_tokens},
    }
