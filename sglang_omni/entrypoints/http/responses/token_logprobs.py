"""Log probabilities of tokens in OpenAI's form."""

import math
from collections.abc import Iterable
from typing import Any

from sglang_omni.engines.thinker.contract import TokenLogprob
from sglang_omni.entrypoints.requests.token_text import TokenText

# Stands for minus infinity, which JSON cannot express.
MIN_LOGPROB = -9999.0


def build_logprobs(tokens: Iterable[TokenLogprob], token_text: TokenText) -> dict[str, Any]:
    """Return the `logprobs` of a choice. Tokens without text, such as the end, are left out."""
    entries = [
        {
            **_build_entry(token.token_id, token.logprob, token_text),
            "top_logprobs": [
                _build_entry(token_id, logprob, token_text) for token_id, logprob in token.top
            ],
        }
        for token in tokens
        if token_text(token.token_id)[1]
    ]
    return {"content": entries, "refusal": None}


def _build_entry(token_id: int, logprob: float, token_text: TokenText) -> dict[str, Any]:
    name, data = token_text(token_id)
    text = data.decode("utf-8", errors="replace") if data else name
    return {"token": text, "logprob": to_finite(logprob), "bytes": [*data]}


def to_finite(logprob: float) -> float:
    """Return a log probability that JSON can express."""
    return logprob if math.isfinite(logprob) else MIN_LOGPROB
