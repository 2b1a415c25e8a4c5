"""Segments and words of speech as clients see them."""

from typing import Any

from sglang_omni.pipeline.request import TimedSegment

# Times have milliseconds.
_DIGITS = 3


def describe_segment(segment: TimedSegment, index: int) -> dict[str, Any]:
    """Return a segment and its words as JSON objects. `index` is its number in the answer."""
    described = {
        "id": index,
        "text": segment.text,
        **_describe_span(segment.start, segment.end),
        "voice": segment.voice,
        "turn": segment.turn,
    }
    words = [{"word": word.text, **_describe_span(word.start, word.end)} for word in segment.words]
    return {"segments": [described], "words": words}


def _describe_span(start: float, end: float) -> dict[str, float]:
    return {"start": round(start, _DIGITS), "end": round(end, _DIGITS)}
