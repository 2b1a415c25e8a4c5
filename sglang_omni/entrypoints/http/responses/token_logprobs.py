"""Log probabilities of tokens in OpenAI's form."""

import math
from collections.abc import Callable, Iterable
from typing import Any

from sglang_omni.engines.thinker.contract import TokenLogprob

# What has no probability at all: JSON knows no infinity.
LEAST = -9999.0
TokenPiece = Callable[[int], tuple[str, bytes]]


def logprobs_json(tokens: Iterable[TokenLogprob], piece_of: TokenPiece) -> dict[str, Any]:
    """The `logprobs` of a choice. Tokens that add no text, such as the end, are none of it."""
    entries = [
        {
            **_entry(one.token_id, one.logprob, piece_of),
            "top_logprobs": [_entry(token, value, piece_of) for token, value in one.top],
        }
        for one in tokens
        if piece_of(one.token_id)[1]
    ]
    return {"content": entries, "refusal": None}


def _entry(token_id: int, logprob: float, piece_of: TokenPiece) -> dict[str, Any]:
    name, data = piece_of(token_id)
    value = logprob if math.isfinite(logprob) else LEAST
    text = data.decode("utf-8", errors="replace") if data else name
    return {"token": text, "logprob": value, "bytes": [*data]}
