"""Spans of speech, from the probabilities of frames of 32 ms."""

import random
from itertools import pairwise

import pytest

from sglang_omni.media.speech_spans import FRAME_S, CutRules, SpanFinder, SpeechSpan

RULES = CutRules(threshold=0.5, min_silence_s=0.32, padding_s=0.1, max_speech_s=3.2)


def find(probabilities: list[float], rules: CutRules = RULES) -> list[SpeechSpan]:
    finder = SpanFinder(rules)
    return [*finder.push(probabilities), *finder.finish()]


def frames(seconds: float) -> int:
    return round(seconds / FRAME_S)


def test_a_span_lasts_from_speech_to_silence() -> None:
    (span,) = find([0.0] * 20 + [0.9] * 40 + [0.0] * 20)
    assert span.start == pytest.approx(20 * FRAME_S)
    assert span.end == pytest.approx(60 * FRAME_S)
    assert span.probability == pytest.approx(0.9)
    assert span.padded_start == pytest.approx(span.start - 0.1)
    assert span.padded_end == pytest.approx(span.end + 0.1)


def test_a_short_pause_does_not_end_a_span() -> None:
    assert len(find([0.9] * 20 + [0.1] * 9 + [0.9] * 20)) == 1
    assert len(find([0.9] * 20 + [0.1] * 10 + [0.9] * 20)) == 2


def test_speech_ends_at_a_lower_probability_than_it_begins_at() -> None:
    assert not find([0.4] * 100)
    (span,) = find([0.6] + [0.4] * 40)
    assert span.end == pytest.approx(41 * FRAME_S)


def test_a_click_is_not_speech() -> None:
    assert not find([0.0] * 10 + [0.9] * 3 + [0.0] * 30)
    assert find([0.0] * 10 + [0.9] * 4 + [0.0] * 30)


def test_silence_has_no_span() -> None:
    assert not find([0.02] * 1000)
    assert not find([])


def test_long_speech_is_cut_where_it_is_weakest() -> None:
    long = [0.9] * 250
    long[70] = 0.6
    spans = find(long)
    assert spans[0].end == spans[1].start == pytest.approx(70 * FRAME_S)
    # Nothing is lost and nothing is heard twice.
    for before, after in pairwise(spans):
        assert before.end == before.padded_end == after.start == after.padded_start
    assert spans[-1].end == pytest.approx(250 * FRAME_S)


def test_padding_never_reaches_the_neighbour() -> None:
    rules = CutRules(threshold=0.5, min_silence_s=0.1, padding_s=2.0)
    spans = find([0.9] * 10 + [0.0] * 5 + [0.9] * 10 + [0.0] * 200, rules)
    assert spans[0].padded_start == 0.0
    assert spans[0].padded_end <= spans[1].padded_start
    assert spans[1].padded_end >= spans[1].end


@pytest.mark.parametrize("seed", range(20))
def test_any_division_into_chunks_gives_the_same_spans(seed: int) -> None:
    chance = random.Random(seed)
    values: list[float] = []
    while len(values) < 2000:
        values += [chance.choice((0.05, 0.3, 0.45, 0.95))] * chance.randrange(1, 60)
    finder, spans, position = SpanFinder(RULES), [], 0
    while position < len(values):
        size = chance.randrange(1, 100)
        spans += finder.push(values[position : position + size])
        position += size
    spans += finder.finish()
    assert spans == find(values)
    assert all(a.padded_end <= b.padded_start + 1e-9 for a, b in pairwise(spans))
    assert all(span.end - span.start <= RULES.max_speech_s + FRAME_S for span in spans)
    assert all(span.padded_start >= 0 for span in spans)
