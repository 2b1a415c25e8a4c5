"""Conversion of SGLang's outputs and errors. Pure functions."""

from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Any

from sglang_omni.engines.runtime.shared_array import Layout
from sglang_omni.engines.thinker.contract import ThinkerOutput, TokenLogprob
from sglang_omni.protocol.errors import EngineFailed, InvalidRequest
from sglang_omni.protocol.sampling import SamplingParams

# Under this key the model returns where it has written the states at query tokens.
QUERY_STATES_KEY = "query_states"


def to_output(raw: dict[str, Any], sampling: SamplingParams) -> ThinkerOutput:
    """Return the new tokens of an output of SGLang, which must be incremental.

    Raises:
        InvalidRequest: SGLang rejected the request; the error names the field.
        EngineFailed: SGLang aborted the request.
    """
    meta = raw["meta_info"]
    reason = meta["finish_reason"]
    if reason is not None and reason["type"] == "abort":
        message = reason.get("message", "aborted")
        if reason.get("status_code") == HTTPStatus.BAD_REQUEST:
            raise InvalidRequest(message, param=find_field(message, sampling))
        raise EngineFailed(f"the thinker aborted the request: {message}")
    return ThinkerOutput(
        token_ids=tuple(raw["output_ids"]),
        prompt_tokens=meta["prompt_tokens"],
        cached_tokens=meta["cached_tokens"],
        completion_tokens=meta["completion_tokens"],
        finish_reason=reason["type"] if reason else None,
        logprobs=_to_logprobs(meta),
    )


def _to_logprobs(meta: dict[str, Any]) -> tuple[TokenLogprob, ...]:
    """Return the log probabilities of new tokens."""
    sampled = meta.get("output_token_logprobs") or []
    return tuple(_convert_logprobs(sampled, meta.get("output_top_logprobs")))


def to_prompt_logprobs(meta: dict[str, Any]) -> tuple[TokenLogprob, ...]:
    """Return the log probabilities of the prompt's tokens but the first, which has none."""
    tokens, likeliest = meta["input_token_logprobs"], meta.get("input_top_logprobs") or []
    return tuple(_convert_logprobs(tokens[1:], likeliest[1:]))


def _convert_logprobs(
    tokens: Sequence[Any], likeliest: Sequence[Any] | None
) -> Iterator[TokenLogprob]:
    """Convert SGLang's tuples (log probability, token id, None) of tokens and top tokens."""
    for (logprob, token, _), top in zip(tokens, likeliest or [None] * len(tokens), strict=True):
        pairs = tuple((top_token, value) for value, top_token, _ in top or ())
        yield TokenLogprob(token, logprob, pairs)


def to_query_states(meta: dict[str, Any]) -> Layout:
    """Return the layout of the states at the query tokens.

    Raises:
        EngineFailed: There are none, because the query tokens were found in the radix cache.
    """
    found = [layout for layout in meta.get(QUERY_STATES_KEY) or () if layout is not None]
    if not found:
        raise EngineFailed("the thinker returned no states of the query tokens")
    layout: Layout = found[0]
    return layout


def find_field(message: str, sampling: SamplingParams) -> str:
    """Return the request field that an error message of SGLang is about."""
    if "logit_bias" in message:
        return "logit_bias"
    if "rammar" not in message and "schema" not in message:
        return "messages"
    return sampling.grammar.field if sampling.grammar else "response_format"
