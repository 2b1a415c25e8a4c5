"""Loads of an `sglang.Engine`: clients that start together, and when their tokens arrive."""

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.serving.speech_summary import percentile

Row = dict[str, Any]


@dataclass(frozen=True)
class Round:
    """A load of `clients` requests at once.

    Each has `prompt` random tokens and `tokens` output tokens.
    """

    clients: int
    prompt: int
    tokens: int


@dataclass(frozen=True)
class Arrivals:
    """The arrivals of one answer's tokens: (seconds since the request, tokens so far)."""

    events: tuple[tuple[float, int], ...]

    @property
    def first_s(self) -> float:
        """Return when the first token arrived."""
        return self.events[0][0]

    @property
    def last_s(self) -> float:
        """Return when the last token arrived."""
        return self.events[-1][0]

    def tokens_until(self, at_s: float) -> int:
        """Return the number of tokens that had arrived by then."""
        return max((count for when, count in self.events if when <= at_s), default=0)


def run_rounds(engine: Any, rounds: Sequence[Round], vocabulary: int) -> list[Row]:
    """Run the rounds one after the other, with prompts that never repeat. Return a row for each."""
    rows = []
    for load in rounds:
        prompts = random_prompts(load, vocabulary)
        arrivals = engine.loop.run_until_complete(generate_all(engine, prompts, load.tokens))
        rows.append(summarise_round(load, arrivals))
    return rows


def random_prompts(load: Round, vocabulary: int) -> list[list[int]]:
    """Draw the random prompts of a round; none repeats."""
    return [[random.randrange(vocabulary) for _ in range(load.prompt)] for _ in range(load.clients)]


async def generate_all(engine: Any, prompts: list[list[int]], tokens: int) -> list[Arrivals]:
    """Generate `tokens` tokens after each prompt, all at once."""
    started_at = time.perf_counter()
    return list(
        await asyncio.gather(*(_generate(engine, ids, tokens, started_at) for ids in prompts))
    )


async def _generate(engine: Any, ids: list[int], tokens: int, started_at: float) -> Arrivals:
    sampling = {"temperature": 0.0, "max_new_tokens": tokens, "ignore_eos": True}
    events, count = [], 0
    stream = await engine.async_generate(input_ids=ids, sampling_params=sampling, stream=True)
    async for output in stream:
        count += len(output["output_ids"])
        events.append((time.perf_counter() - started_at, count))
    return Arrivals(tuple(events))


def summarise_round(load: Round, arrivals: Sequence[Arrivals]) -> Row:
    """Compute the row of a round from its arrivals."""
    window_start, window_end = max(a.first_s for a in arrivals), min(a.last_s for a in arrivals)
    # If the first answer ends before the last starts, there is no time when all of them decode.
    all_decode = window_end > window_start
    window_tokens = sum(a.tokens_until(window_end) - a.tokens_until(window_start) for a in arrivals)
    overall_rate = sum(a.events[-1][1] for a in arrivals) / max(a.last_s for a in arrivals)
    tpots = [(a.last_s - a.first_s) / max(1, a.events[-1][1] - a.events[0][1]) for a in arrivals]
    ttfts_ms = [a.first_s * 1e3 for a in arrivals]
    return {
        "clients": load.clients,
        "tokens_per_s": round(window_tokens / (window_end - window_start), 2)
        if all_decode
        else round(overall_rate, 2),
        "tokens_per_s_prefill_included": round(overall_rate, 2),
        "tpot_ms": round(sum(tpots) / len(tpots) * 1e3, 3),
        "ttft_ms": {f"p{q}": round(percentile(ttfts_ms, q) or 0.0, 2) for q in (50, 95)},
    }
