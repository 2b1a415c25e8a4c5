"""Fragments follow each other without a click and without a gap."""

from collections.abc import Sequence

import numpy as np
import pytest

from sglang_omni.pipeline.segment_fader import FADE_S, MAX_LEAD_S, SegmentFader

RATE = 44_100
# What follows a full-scale sample at most, when it rises from or falls to silence.
LARGEST_STEP = 0.02


def loud(seconds: float, level: float = 0.5) -> np.ndarray:
    """A slow wave that is cut in the middle of a swing at both ends."""
    time = np.arange(int(seconds * RATE)) / RATE
    return (level * np.cos(2 * np.pi * 100 * time)).astype(np.float32)


def quiet(seconds: float) -> np.ndarray:
    return np.zeros(int(seconds * RATE), np.float32)


def joined(fragments: Sequence[np.ndarray], chunk: int) -> np.ndarray:
    """The fragments as a listener hears them, pushed in chunks of that many samples."""
    heard = []
    for number, pcm in enumerate(fragments):
        edges = SegmentFader(RATE, has_previous=number > 0)
        starts = range(0, len(pcm), chunk)
        heard += [edges.push(pcm[at : at + chunk], at + chunk >= len(pcm)) for at in starts]
    return np.concatenate(heard)


def longest_pause_s(pcm: np.ndarray) -> float:
    silent = np.abs(pcm) < 1e-3
    longest = run = 0
    for sample in silent:
        run = run + 1 if sample else 0
        longest = max(longest, run)
    return longest / RATE


@pytest.mark.parametrize("chunk", [441, 14_112, 10**9])
def test_no_sample_steps_where_fragments_meet(chunk: int) -> None:
    fragments = [loud(0.4)[:-20], loud(0.5), loud(0.3)]
    raw = np.concatenate([*fragments, quiet(0.1)])
    assert np.abs(np.diff(raw)).max() > 0.4, "cut like this they do click"
    heard = np.concatenate((joined(fragments, chunk), quiet(0.1)))
    assert np.abs(np.diff(heard)).max() < LARGEST_STEP
    assert abs(len(heard) - len(raw)) <= 2 * FADE_S * RATE


@pytest.mark.parametrize("chunk", [441, 14_112, 10**9])
def test_a_pause_between_fragments_is_short(chunk: int) -> None:
    """The trimmer leaves 0.3 s at an end; the model may begin with any silence."""
    first = np.concatenate((loud(0.4), quiet(0.3)))
    second = np.concatenate((quiet(1.7), loud(0.4)))
    assert longest_pause_s(joined([first, second], chunk)) < 0.3 + MAX_LEAD_S + 0.03


def test_the_first_fragment_is_not_touched_before_its_end() -> None:
    pcm = np.concatenate((quiet(1.0), loud(0.5)))
    heard = joined([pcm], 4410)
    kept = len(pcm) - int(FADE_S * RATE)
    assert np.array_equal(heard[:kept], pcm[:kept])
    assert heard[-1] == 0


@pytest.mark.parametrize("chunk", [900, 5_000, 14_112, 19_999])
def test_how_a_fragment_is_cut_into_chunks_makes_no_difference(chunk: int) -> None:
    pcm = np.concatenate((quiet(0.73), loud(0.6), quiet(0.2)))
    assert np.array_equal(joined([loud(0.1), pcm], 10**9), joined([loud(0.1), pcm], chunk))


def test_a_silent_fragment_becomes_a_short_pause() -> None:
    heard = joined([loud(0.2), quiet(2.0), loud(0.2)], 14_112)
    assert longest_pause_s(heard) < 2 * MAX_LEAD_S + 0.03
