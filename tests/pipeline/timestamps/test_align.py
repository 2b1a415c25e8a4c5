"""Words are put where the speech is: in order, without overlaps, with pauses between them."""

from itertools import pairwise
from random import Random

import pytest

from sglang_omni.pipeline.timestamps.align import align_tokens
from sglang_omni.pipeline.timestamps.speech_runs import SpeechRun
from sglang_omni.pipeline.timestamps.spoken_tokens import SpokenToken, split_tokens


def test_one_run_is_shared_by_the_usual_lengths() -> None:
    tokens = split_tokens("a remarkable mill")
    spans = align_tokens(tokens, [SpeechRun(0.5, 2.5)])
    assert spans[0][0] == pytest.approx(0.5)
    assert spans[-1][1] == pytest.approx(2.5)
    for token, (start, end) in zip(tokens, spans, strict=True):
        share = token.seconds / sum(one.seconds for one in tokens)
        assert end - start == pytest.approx(2.0 * share)
    assert all(first[1] == pytest.approx(second[0]) for first, second in pairwise(spans))


def test_a_pause_is_after_the_comma() -> None:
    """Three short words before the comma take as long as the usual lengths say, or not."""
    tokens = split_tokens("In the end, they all went home")
    for end in (0.4, 0.6, 0.9):
        spans = align_tokens(tokens, [SpeechRun(0.0, end), SpeechRun(end + 0.3, end + 1.5)])
        assert spans[2][1] == pytest.approx(end)
        assert spans[3][0] == pytest.approx(end + 0.3)


def test_a_pause_without_a_mark_is_where_the_lengths_fit() -> None:
    tokens = split_tokens("one two six ten red big")
    spans = align_tokens(tokens, [SpeechRun(0.0, 0.4), SpeechRun(1.0, 1.8)])
    assert spans[1][1] == pytest.approx(0.4)
    assert spans[2][0] == pytest.approx(1.0)


def test_a_word_may_have_a_pause_in_it() -> None:
    (span,) = align_tokens(split_tokens("unbelievable"), [SpeechRun(0.1, 0.4), SpeechRun(0.6, 1)])
    assert span == pytest.approx((0.1, 1.0))


@pytest.mark.parametrize("seed", range(20))
def test_any_words_fit_any_runs(seed: int) -> None:
    random = Random(seed)
    words = " ".join(random.choice(["a", "mill,", "river", "天"]) for _ in range(1 + seed * 3))
    at, runs = 0.0, []
    for _ in range(random.randint(1, 25)):
        start = at + random.uniform(0.1, 0.5)
        at = start + random.uniform(0.03, 1.0)
        runs.append(SpeechRun(start, at))
    tokens = split_tokens(words)
    spans = align_tokens(tokens, runs)
    assert len(spans) == len(tokens)
    assert spans[0][0] == pytest.approx(runs[0].start)
    assert spans[-1][1] == pytest.approx(runs[-1].end)
    times = [time for span in spans for time in span]
    assert all(later > earlier - 1e-6 for earlier, later in pairwise(times))


def test_without_speech_or_words_nothing_is_located() -> None:
    tokens: list[SpokenToken] = [*split_tokens("two words")]
    assert align_tokens(tokens, []) == [(0.0, 0.0)] * 2
    assert align_tokens([], [SpeechRun(0, 1)]) == []
