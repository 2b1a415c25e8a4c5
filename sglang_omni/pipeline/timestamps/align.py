"""Align the words of a fragment with its speech: words in order, pauses between words.

The pauses of the speech are known from its level, and how long each word usually takes from its
letters. The words are divided among the runs of speech so that each run has words of about its
length and pauses are where punctuation is. Within a run the words share the time by their usual
lengths.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sglang_omni.pipeline.timestamps.speech_runs import SpeechRun
from sglang_omni.pipeline.timestamps.spoken_tokens import SpokenToken

# Standard deviation of the length of words that usually take a second, in seconds.
SPREAD_S = 0.25
# The cost of a pause between words without a mark, and of a mark without a pause.
UNMARKED_PAUSE_COST = 4.0
UNPAUSED_MARK_COST = 1.0
# The cost of a pause within a word or a group of words, for each second of it.
INNER_PAUSE_COST = 40.0
# How many runs of speech one group of words may have.
MAX_RUNS_IN_GROUP = 4
# A fragment of 50 words has some ten. More are joined, which bounds the work.
MAX_RUNS = 64
_TOLERANCE_S = 1e-6

Span = tuple[float, float]


@dataclass(frozen=True)
class _Group:
    """Tokens `first` to `end` (exclusive), which are spoken in some runs of speech."""

    first: int
    end: int
    runs: Sequence[SpeechRun]


def align_tokens(tokens: Sequence[SpokenToken], runs: Sequence[SpeechRun]) -> Sequence[Span]:
    """Return the start and the end of each token in seconds, in order and without overlaps.

    Without any speech every token is at 0.
    """
    if not tokens or not runs:
        return [(0.0, 0.0)] * len(tokens)
    runs = _join_runs(runs, min(len(tokens), MAX_RUNS))
    seconds = np.array([token.seconds for token in tokens])
    seconds *= sum(run.seconds for run in runs) / seconds.sum()
    spans: list[Span] = []
    for group in _divide(tokens, seconds, runs):
        spans += _share_time(seconds[group.first : group.end], group.runs)
    return spans


def _join_runs(runs: Sequence[SpeechRun], max_runs: int) -> Sequence[SpeechRun]:
    """Return at most `max_runs` runs: those with the shortest pauses between them are joined."""
    joined = list(runs)
    while len(joined) > max_runs:
        pauses = [later.start - run.end for run, later in pairwise(joined)]
        at = pauses.index(min(pauses))
        joined[at : at + 2] = [SpeechRun(joined[at].start, joined[at + 1].end)]
    return joined


def _divide(
    tokens: Sequence[SpokenToken], seconds: np.ndarray, runs: Sequence[SpeechRun]
) -> Sequence[_Group]:
    """Divide tokens and runs into groups with the least total cost. Each group has some of both.

    This is a dynamic program over the runs: `costs[end]` is the least cost of having spoken the
    tokens up to `end` at the end of a run.
    """
    cost = _GroupCost(tokens, seconds)
    start = np.full(len(tokens) + 1, np.inf)
    start[0] = 0.0
    costs, origins = [start], []
    for end_run in range(1, len(runs) + 1):
        first_runs = range(max(0, end_run - MAX_RUNS_IN_GROUP), end_run)
        totals = np.stack(
            [costs[run][:, None] + cost.compute(runs[run:end_run]) for run in first_runs]
        )
        flat = totals.reshape(-1, totals.shape[2])
        best = flat.argmin(axis=0)
        costs.append(flat[best, np.arange(flat.shape[1])])
        origins.append([(first_runs[at // len(start)], at % len(start)) for at in best.tolist()])
    groups, end_run, end = list[_Group](), len(runs), len(tokens)
    while end_run:
        first_run, first = origins[end_run - 1][end]
        groups.append(_Group(first, end, runs[first_run:end_run]))
        end_run, end = first_run, first
    return groups[::-1]


class _GroupCost:
    """How badly each group of tokens fits some runs of speech."""

    def __init__(self, tokens: Sequence[SpokenToken], seconds: np.ndarray) -> None:
        """Take the tokens and how long each is expected to take in this speech."""
        ends = np.concatenate(([0.0], np.cumsum(seconds)))
        usual = ends[None, :] - ends[:, None]
        self._usual = np.where(usual > 0, usual, np.nan)
        marks = np.array([token.has_pause for token in tokens])
        before = np.concatenate(([0], np.cumsum(marks)))
        inner_marks = np.concatenate(([0], before[:-1]))[None, :] - before[:, None]
        self._fixed = UNPAUSED_MARK_COST * np.maximum(inner_marks, 0) + np.where(
            np.concatenate(([False], marks)), 0.0, UNMARKED_PAUSE_COST
        )

    def compute(self, runs: Sequence[SpeechRun]) -> np.ndarray:
        """Return the costs [first token, end token] of the groups that these runs speak."""
        spoken_s = sum(run.seconds for run in runs)
        pause_s = runs[-1].end - runs[0].start - spoken_s
        fit = (spoken_s - self._usual) ** 2 / (SPREAD_S**2 * self._usual)
        return np.nan_to_num(fit, nan=np.inf) + self._fixed + INNER_PAUSE_COST * pause_s


def _share_time(seconds: np.ndarray, runs: Sequence[SpeechRun]) -> Sequence[Span]:
    """Return the spans of tokens that share the speech of some runs by their usual lengths."""
    run_ends = np.cumsum([run.seconds for run in runs])
    shares = np.concatenate(([0.0], np.cumsum(seconds))) * run_ends[-1] / seconds.sum()
    # A word that ends with a run ends there, and the next one starts with the next run.
    starts = np.searchsorted(run_ends[:-1], shares[:-1] + _TOLERANCE_S, side="right")
    ends = np.searchsorted(run_ends[:-1], shares[1:] - _TOLERANCE_S, side="right")
    before = np.concatenate(([0.0], run_ends[:-1]))
    offsets = np.array([run.start for run in runs]) - before
    spans = zip(shares[:-1] + offsets[starts], shares[1:] + offsets[ends], strict=True)
    return [(float(start), float(end)) for start, end in spans]
