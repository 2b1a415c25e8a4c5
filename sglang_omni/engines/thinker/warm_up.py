"""Requests that the thinker answers before it is ready, so that later ones wait for no kernel.

On a GPU, kernels are compiled on first use: the sampler's for each kind of sampling, and those of
prompts for each bucket of lengths. Expert products are tuned for numbers of tokens that are powers
of two, or one and a half times such powers, and a prefill uses the nearest. Triton compiles once
more where a number of tokens, or of prompts, is 1 or a multiple of 16.
"""

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from sglang_omni.engines.thinker.contract import ThinkerInfo
from sglang_omni.system.progress import report_progress

LOGGER = logging.getLogger(__name__)

# Greedy, and every kind of sampling.
SAMPLING: tuple[dict[str, Any], ...] = (
    {"temperature": 0.0},
    {"temperature": 0.8, "top_p": 0.9, "top_k": 20, "min_p": 0.05, "repetition_penalty": 1.1},
    {"temperature": 0.8, "top_p": 0.9},
    {"frequency_penalty": 0.1, "presence_penalty": 0.1, "logit_bias": {"0": 1.0}},
)
SCHEMA = {"temperature": 0.0, "json_schema": '{"type": "object"}'}
SHORTEST_BUCKET = 16
# Prompts that arrive together, and the tokens of each.
BATCHES, BATCH_TOKENS = (2, 16), 20


class GeneratingEngine(Protocol):
    """What of `sglang.Engine` the warm-up uses."""

    def generate(self, *, input_ids: Any, sampling_params: dict[str, Any]) -> Any:
        """Answer a prompt, or several at once."""


@dataclass(frozen=True)
class PromptBatch:
    """Prompts of `tokens` tokens that are read in one prefill."""

    tokens: int
    prompts: int = 1


def list_buckets(max_tokens: int) -> list[int]:
    """Return the lengths of prompts that stand for all up to `max_tokens`, which is the last.

    They are powers of two from 16, and one and a half times such powers, in ascending order.
    """
    lengths, power = [], SHORTEST_BUCKET
    while power <= max_tokens:
        lengths += [power, power + power // 2]
        power *= 2
    # The longest prefill has a bucket, too, where it is no such number.
    return [length for length in lengths if length < max_tokens] + [max_tokens]


def list_prompts(info: ThinkerInfo, chunk_tokens: int) -> list[PromptBatch]:
    """Return the prompts to warm up, the shortest first.

    Args:
        info: What the thinker can take.
        chunk_tokens: Tokens of a prompt that are read at once; -1 for all of them.
    """
    longest = min(info.context_length, info.max_total_tokens) - 2
    if chunk_tokens > 0:
        longest = min(longest, chunk_tokens)
    lengths = [
        near
        for length in list_buckets(longest)
        # Of the bucket, and no multiple of 16.
        for near in dict.fromkeys((length - 1, length))
    ]
    batches = [
        PromptBatch(BATCH_TOKENS, prompts)
        for prompts in BATCHES
        if prompts <= info.max_running_requests
        and prompts * (BATCH_TOKENS + 2) < info.max_total_tokens
    ]
    return [*map(PromptBatch, lengths), *batches]


def warm_up(
    engine: GeneratingEngine, info: ThinkerInfo, chunk_tokens: int, *, prompts: bool
) -> None:
    """Have the engine compile the kernels of sampling and, with `prompts`, of every prefill."""
    report_progress("warming up the thinker")
    for sampling in (*SAMPLING, *([SCHEMA] if info.supports_json_schema else [])):
        engine.generate(input_ids=[0, 1], sampling_params={**sampling, "max_new_tokens": 2})
    if not prompts:
        return
    batches, started_at = list_prompts(info, chunk_tokens), time.perf_counter()
    longest = max(batch.tokens for batch in batches)
    report_progress(f"warming up prompts of up to {longest} tokens")
    for ids in draw_prompts(batches):
        engine.generate(input_ids=ids, sampling_params={"max_new_tokens": 1})
    LOGGER.info(
        "warmed up %d prefills of up to %d tokens in %.1f s",
        len(batches),
        longest,
        time.perf_counter() - started_at,
    )


def draw_prompts(batches: list[PromptBatch]) -> Iterator[list[list[int]]]:
    """Yield the token ids of the prompts of each batch.

    No two begin alike: what is in the radix cache would not be computed again.
    """
    token = 0
    for batch in batches:
        ids = [[token + number] * batch.tokens for number in range(batch.prompts)]
        token += batch.prompts
        yield ids
