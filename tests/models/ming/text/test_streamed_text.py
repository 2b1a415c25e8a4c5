"""A text that arrives in pieces is read as the whole text, wherever it is divided."""

import itertools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from measurement.spoken_forms.pairs import Pair, read_pairs
from sglang_omni.models.ming.text.front import NormalizingFrontEnd
from sglang_omni.normalization.normalizer import build_normalizer
from sglang_omni.pipeline.segment import Segment, Segmenter, SegmentSettings

DATA = Path(__file__).parents[3] / "normalization" / "data"
NORMALIZER = build_normalizer()
# Short segments, so that a cut is tried at almost every word.
EAGER = SegmentSettings(min_tokens=2, max_tokens=9, first_min_tokens=1, first_max_wait_s=0.1)
STEP_S = 0.05
# Longer texts are divided at every seventh place.
SHORT_CHARACTERS = 80


def reduce(fragments: Iterable[str]) -> str:
    """Return the letters of fragments, without blanks and marks."""
    return re.sub(r"[\W_]", "", " ".join(fragments)).lower()


def read_whole(text: str) -> str:
    return reduce(NormalizingFrontEnd(NORMALIZER).split_fragments(text))


def read_streamed(pieces: Iterable[str], settings: SegmentSettings) -> tuple[str, str]:
    """Return what is spoken, and the text of the segments."""
    front_end = NormalizingFrontEnd(NORMALIZER)
    spoken: list[str] = []
    sources: list[str] = []
    for segment in cut(pieces, Segmenter(settings, front_end.safe_cut)):
        sources.append(segment.source)
        spoken += front_end.split_fragments(segment.source)
    return reduce(spoken), "".join(sources)


def cut(pieces: Iterable[str], segmenter: Segmenter) -> Iterator[Segment]:
    """Yield the segments of pieces that arrive one after the other."""
    now = 0.0
    for piece in pieces:
        yield from segmenter.push(piece, now)
        now += STEP_S
        while (deadline := segmenter.next_deadline()) is not None and deadline <= now:
            yield from segmenter.tick(now)
    yield from segmenter.flush()


def speakable_pairs(language: str) -> list[Pair]:
    """Return the pairs whose letters the talker knows; a lone letter gets a name of its own."""
    pairs = (pair for pair in read_pairs(DATA, language) if not pair.source.endswith("_bare"))
    return [pair for pair in pairs if not re.search(r"[^\W\d_A-Za-z\u4e00-\u9fff]", pair.written)]


def divisions(text: str) -> Iterator[list[str]]:
    """Yield the text in characters, in tokens, and in two at every place."""
    yield list(text)
    yield re.findall(r"\s?\w{1,4}|\W", text)
    step = 1 if len(text) < SHORT_CHARACTERS else 7
    yield from ([text[:place], text[place:]] for place in range(1, len(text), step))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_text_in_pieces_is_read_as_the_whole(language: str) -> None:
    for pair in speakable_pairs(language):
        whole = read_whole(pair.written)
        for pieces in divisions(pair.written):
            spoken, source = read_streamed(pieces, EAGER)
            assert pair.written.startswith(source)
            assert _same(spoken, whole), (pair.written, pieces)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_an_answer_in_tokens_is_read_as_the_whole(language: str) -> None:
    """Sentences after one another, with the settings of the server."""
    pairs = speakable_pairs(language)
    end, blank = ("。", "") if language == "zh" else (".", " ")
    for first, second in itertools.pairwise(pairs):
        text = f"{first.written}{end}{blank}{second.written}{end}"
        spoken, _ = read_streamed(next(divisions(text)), SegmentSettings())
        assert _same(spoken, read_whole(text)), text


def _same(spoken: str, whole: str) -> bool:
    """Whether readings are equal but for a lone letter at the end, which gets its name."""
    return spoken == whole or (spoken[:-3] == whole[:-1] and whole[-1:].isascii())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("It is about 1/", "2 of it all."),
        ("He lives in the city of St", ". Louis, which is big."),
        ("Please go and look at www.", "python.org for more."),
        ("The car was driving at 100 ", "km/h on that road."),
        ("They all met there on July", " 4 of that same year."),
        ("请您拨打下面的电话010-", "64035547联系我们。"),
        ("Please write to john.smith@", "example.com as soon as you can."),
        ("The value that we found is 3.", "14 and not more than that."),
    ],
)
def test_no_form_is_cut(before: str, after: str) -> None:
    segments = [segment.source for segment in cut([before, after], make_late_segmenter())]
    joined = "".join(segments)
    place = len(before)
    ends = {len("".join(segments[: index + 1])) for index in range(len(segments))}
    assert joined == before + after
    assert place not in ends - {len(joined)}


def make_late_segmenter() -> Segmenter:
    """Return a segmenter whose first deadline has passed at once."""
    return Segmenter(EAGER, NormalizingFrontEnd(NORMALIZER).safe_cut)
