"""Loads of an `sglang.Engine`: clients that begin together, and when each token came."""

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
    """So many `clients` at once, each with `prompt` random tokens and `tokens` to answer."""

    clients: int
    prompt: int
    tokens: int


@dataclass(frozen=True)
class Arrivals:
    """When tokens of one answer came: (seconds since the request, tokens so far)."""

    events: tuple[tuple[float, int], ...]

    @property
    def first_s(self) -> float:
        """When the first token came."""
        return self.events[0][0]

    @property
    def last_s(self) -> float:
        """When the last token came."""
        return self.events[-1][0]

    def until(self, at_s: float) -> int:
        """Tokens that had come by then."""
        return max((count for when, count in self.events if when <= at_s), default=0)


def run_rounds(engine: Any, rounds: Sequence[Round], vocabulary: int) -> list[Row]:
    """Run the rounds one after the other, with prompts that never repeat; a row of each."""
    rows = []
    for one in rounds:
        prompts = prompts_of(one, vocabulary)
        arrivals = engine.loop.run_until_complete(together(engine, prompts, one.tokens))
        rows.append(row_of(one, arrivals))
    return rows


def prompts_of(one: Round, vocabulary: int) -> list[list[int]]:
    """Random prompts of a round; none repeats."""
    return [[random.randrange(vocabulary) for _ in range(one.prompt)] for _ in range(one.clients)]


async def together(engine: Any, prompts: list[list[int]], tokens: int) -> list[Arrivals]:
    """Ask for so many tokens after each prompt, all at once."""
    began = time.perf_counter()
    return list(await asyncio.gather(*(_ask(engine, ids, tokens, began) for ids in prompts)))


async def _ask(engine: Any, ids: list[int], tokens: int, began: float) -> Arrivals:
    sampling = {"temperature": 0.0, "max_new_tokens": tokens, "ignore_eos": True}
    events, count = [], 0
    stream = await engine.async_generate(input_ids=ids, sampling_params=sampling, stream=True)
    async for output in stream:
        count += len(output["output_ids"])
        events.append((time.perf_counter() - began, count))
    return Arrivals(tuple(events))


def row_of(one: Round, arrivals: Sequence[Arrivals]) -> Row:
    """The figures of a round, from its arrivals."""
    opens, closes = max(a.first_s for a in arrivals), min(a.last_s for a in arrivals)
    # Where the first answer ends before the last begins, no moment has all of them decoding.
    together = closes > opens
    inside = sum(a.until(closes) - a.until(opens) for a in arrivals)
    whole = sum(a.events[-1][1] for a in arrivals) / max(a.last_s for a in arrivals)
    tpots = [(a.last_s - a.first_s) / max(1, a.events[-1][1] - a.events[0][1]) for a in arrivals]
    firsts = [a.first_s * 1e3 for a in arrivals]
    return {
        "clients": one.clients,
        "tokens_per_s": round(inside / (closes - opens), 2) if together else round(whole, 2),
        "tokens_per_s_prefill_included": round(whole, 2),
        "tpot_ms": round(sum(tpots) / len(tpots) * 1e3, 3),
        "ttft_ms": {f"p{q}": round(percentile(firsts, q) or 0.0, 2) for q in (50, 95)},
    }
