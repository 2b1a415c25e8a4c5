"""Checks and conversion of the fields that say how text is sampled."""

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.protocol.errors import InvalidRequest
from sglang_omni.protocol.generation import ChoiceFields
from sglang_omni.protocol.sampling import SamplingParams


def check_stream_options(body: ChoiceFields) -> None:
    """Raise `InvalidRequest` if there are options of a stream, but no stream."""
    if body.stream_options is not None and not body.stream:
        raise InvalidRequest("stream_options: requires stream=true", param="stream_options")


def check_token_limit(name: str, max_tokens: int, backend: Backend) -> None:
    """Raise `InvalidRequest`, naming the field, if a limit exceeds the server's."""
    if max_tokens > backend.max_tokens:
        raise InvalidRequest(f"{name}: must be at most {backend.max_tokens}", param=name)


def convert_sampling(body: ChoiceFields, max_tokens: int) -> SamplingParams:
    """Return the sampling parameters of an answer without a form."""
    return SamplingParams(
        max_tokens=max_tokens,
        temperature=body.temperature,
        top_p=body.top_p,
        top_k=body.top_k,
        min_p=body.min_p,
        repetition_penalty=body.repetition_penalty,
        frequency_penalty=body.frequency_penalty,
        presence_penalty=body.presence_penalty,
        logit_bias=tuple((int(token), bias) for token, bias in body.logit_bias.items()),
        stop=tuple(body.stop),
        seed=body.seed,
    )


def is_text_fixed(body: ChoiceFields, backend: Backend) -> bool:
    """Return whether a seed fixes the text: the thinker is deterministic, or sampling greedy."""
    return backend.deterministic_text or body.temperature == 0
