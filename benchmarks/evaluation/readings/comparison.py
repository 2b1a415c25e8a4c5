"""Compare a transcript with the words that were meant."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from benchmarks.evaluation.readings.number_words import Readings, Words
from benchmarks.evaluation.readings.transcript import plain_words, transcript_readings


class Alignment(NamedTuple):
    """The reading of a transcript with the fewest wrong words, and what it shares with the others.

    Alignments are ordered: fewer wrong words first, then more words in common.
    """

    wrong: int
    missed: int
    # The positions of the intended words that were heard.
    hits: tuple[int, ...] = ()
    heard: Words = ()


class Comparison(NamedTuple):
    """The errors of one sentence: substituted, deleted or inserted words.

    `key_words` are the intended words that are not written as words; `missed_key_words` are those
    of them that were not heard.
    """

    wrong: int
    words: int
    key_words: Words
    missed_key_words: Words
    heard: Words


def compare_words(written: str, intended: str, transcript: str) -> Comparison:
    """Compare a transcript with the intended words of a written sentence."""
    words = plain_words(intended)
    best = align(words, transcript_readings(transcript))
    as_written = align(words, [frozenset({(word,)}) for word in plain_words(written)])
    keys = [number for number in range(len(words)) if number not in as_written.hits]
    missed = [number for number in keys if number not in best.hits]
    return Comparison(
        best.wrong,
        len(words),
        tuple(words[number] for number in keys),
        tuple(words[number] for number in missed),
        best.heard,
    )


def align(intended: Words, pieces: Iterable[Readings]) -> Alignment:
    """Return the best alignment of intended words with any choice of the readings of pieces.

    It is the Levenshtein distance, whose rows follow every reading of a piece and keep the best.
    """
    row = [Alignment(count, count) for count in range(len(intended) + 1)]
    for piece in pieces:
        # Sorted, so that equally good readings do not depend on the order of a set.
        rows = [_follow(row, intended, reading) for reading in sorted(piece)]
        row = [min(column) for column in zip(*rows, strict=True)]
    return row[-1]


def _follow(row: list[Alignment], intended: Words, reading: Sequence[str]) -> list[Alignment]:
    for word in reading:
        row = _add_word(row, intended, word)
    return row


def _add_word(row: list[Alignment], intended: Words, word: str) -> list[Alignment]:
    """Return the row after one more heard word."""
    following = [_change(row[0], word, wrong=1)]
    for number, meant in enumerate(intended):
        is_hit = word == meant
        diagonal = _change(row[number], word, wrong=int(not is_hit), missed=int(not is_hit))
        if is_hit:
            diagonal = diagonal._replace(hits=(*diagonal.hits, number))
        deleted = following[number]._replace(
            wrong=following[number].wrong + 1, missed=following[number].missed + 1
        )
        following.append(min(diagonal, deleted, _change(row[number + 1], word, wrong=1)))
    return following


def _change(alignment: Alignment, word: str, wrong: int, missed: int = 0) -> Alignment:
    return alignment._replace(
        wrong=alignment.wrong + wrong,
        missed=alignment.missed + missed,
        heard=(*alignment.heard, word),
    )
