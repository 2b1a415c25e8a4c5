"""Conversion of the body of a text completion to requests of the pipeline."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.requests.choices import expand_choices
from sglang_omni.entrypoints.requests.metadata import RequestMetadata, require_model
from sglang_omni.entrypoints.requests.sampling import (
    check_stream_options,
    check_token_limit,
    convert_sampling,
)
from sglang_omni.entrypoints.requests.token_text import check_token_ids, decode_tokens
from sglang_omni.entrypoints.text_limit import check_text_length
from sglang_omni.pipeline.request import ChatRequest
from sglang_omni.protocol.completions import MAX_CHOICES, CompletionBody, Prompt
from sglang_omni.protocol.errors import InvalidRequest
from sglang_omni.protocol.sampling import SamplingParams

# Log probabilities of the prompts of one request: for each token its own and the likeliest ones.
MAX_PROMPT_LOGPROBS = 65_536


@dataclass(frozen=True)
class PromptTokens:
    """A prompt: its tokens, and its text for an answer that begins with it."""

    ids: tuple[int, ...]
    text: str


def check_completion_body(body: CompletionBody, backend: Backend) -> None:
    """Check what involves several fields. Raises `InvalidRequest` or `ModelNotFound`."""
    require_model(body.model, backend)
    check_stream_options(body)
    check_token_limit("max_tokens", body.max_tokens, backend)
    if body.max_tokens == 0 and not body.echo:
        raise InvalidRequest("max_tokens: must be at least 1 without echo", param="max_tokens")
    if body.best_of not in (None, body.n):
        raise InvalidRequest("best_of: must equal n; answers are not ranked", param="best_of")
    if body.n * len(body.prompt) > MAX_CHOICES:
        raise InvalidRequest(
            f"n: {len(body.prompt)} prompts with n={body.n} are more than {MAX_CHOICES} answers",
            param="n",
        )
    sizes = [(_name_prompt(body, index), len(prompt)) for index, prompt in enumerate(body.prompt)]
    for name, size in sizes:
        check_text_length([(name, size)], backend.context_length)


def encode_prompts(body: CompletionBody, backend: Backend) -> list[PromptTokens]:
    """Return the prompts as tokens, of which there may be many: run this off the event loop.

    Raises:
        InvalidRequest: A token id is unknown, or the answer would have too many log probabilities.
        ModelNotFound: Another model is asked for.
        ContextExceeded: A prompt is far too long.
    """
    check_completion_body(body, backend)
    prompts = [
        _encode_prompt(prompt, _name_prompt(body, index), body, backend)
        for index, prompt in enumerate(body.prompt)
    ]
    if body.echo and body.logprobs is not None:
        _check_num_logprobs(prompts, body.logprobs, body.n)
    return prompts


def _encode_prompt(
    prompt: Prompt, field: str, body: CompletionBody, backend: Backend
) -> PromptTokens:
    if isinstance(prompt, str):
        return PromptTokens(backend.encode_prompt(prompt), prompt)
    check_token_ids(prompt, field, backend)
    return PromptTokens(prompt, decode_tokens(prompt, backend.decode_token) if body.echo else "")


def _name_prompt(body: CompletionBody, index: int) -> str:
    """Return the field of a prompt: a prompt alone need not be in a list."""
    return f"prompt.{index}" if len(body.prompt) > 1 else "prompt"


def _check_num_logprobs(prompts: Sequence[PromptTokens], top_logprobs: int, count: int) -> None:
    limit = MAX_PROMPT_LOGPROBS // ((1 + top_logprobs) * count)
    num_tokens = sum(len(prompt.ids) for prompt in prompts)
    if num_tokens > limit:
        raise InvalidRequest(
            f"logprobs: the prompts have {num_tokens} tokens, but with echo, logprobs="
            f"{top_logprobs} and n={count} the server returns those of at most {limit}",
            param="logprobs",
        )


def build_completion_requests(
    body: CompletionBody, prompts: Sequence[PromptTokens], metadata: RequestMetadata
) -> list[ChatRequest]:
    """Return a request for each answer: the answers to the first prompt first."""
    sampling = build_completion_sampling(body)
    requests: list[ChatRequest] = []
    for index, prompt in enumerate(prompts):
        name = replace(metadata, id=f"{metadata.id}-p{index}") if index else metadata
        chat = ChatRequest(**vars(name), messages=(), sampling=sampling, prompt_ids=prompt.ids)
        requests += expand_choices(chat, body.n)
    return requests


def build_completion_sampling(body: CompletionBody) -> SamplingParams:
    """Return the sampling parameters. An answer that is the prompt alone takes one token too."""
    return replace(
        convert_sampling(body, max(body.max_tokens, 1)),
        top_logprobs=body.logprobs,
        prompt_logprobs=body.echo and body.logprobs is not None,
    )
