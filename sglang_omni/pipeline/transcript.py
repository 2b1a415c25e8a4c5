"""Transcribe the pieces of a recording, several at a time, and put their texts in order."""

import unicodedata
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass

from sglang_omni.engines.thinker.contract import TokenLogprob
from sglang_omni.pipeline.async_streams import run_in_order
from sglang_omni.pipeline.completeness import require_finished
from sglang_omni.pipeline.recording import RecordingEnd, RecordingPiece
from sglang_omni.pipeline.request import ChatRequest, Event, Finished, TextDelta, Usage

# Pieces of one recording that are transcribed at once.
MAX_CONCURRENT_PIECES = 4


@dataclass(frozen=True)
class TranscriptText:
    """New text of the transcript, joined to the text before it."""

    text: str


@dataclass(frozen=True)
class TranscriptSegment:
    """What is said between two times of a recording, in seconds.

    `logprobs` are empty unless the request asks for them.
    """

    start: float
    end: float
    text: str
    usage: Usage
    speech_probability: float
    logprobs: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True)
class TranscriptEnd:
    """The end of a recording of `seconds`."""

    seconds: float


TranscriptEvent = TranscriptText | TranscriptSegment | TranscriptEnd
BuildRequest = Callable[[RecordingPiece, int], ChatRequest]
"""Returns the request that transcribes a piece with an index."""
Respond = Callable[[ChatRequest], AsyncGenerator[Event, None]]


async def transcribe(
    pieces: AsyncGenerator[RecordingPiece | RecordingEnd, None],
    build_request: BuildRequest,
    respond: Respond,
) -> AsyncGenerator[TranscriptEvent, None]:
    """Yield the texts of the pieces in order, the segment after each, and the end.

    The texts joined are the transcript. Closing the generator stops all work.
    """
    joiner = _TextJoiner()
    streams = _start_pieces(pieces, build_request, respond)
    async with aclosing(run_in_order(streams, MAX_CONCURRENT_PIECES)) as events:
        async for event in events:
            if isinstance(event, TranscriptText):
                if text := joiner.push(event.text):
                    yield TranscriptText(text)
                continue
            joiner.end_segment()
            yield event


async def _start_pieces(
    pieces: AsyncGenerator[RecordingPiece | RecordingEnd, None],
    build_request: BuildRequest,
    respond: Respond,
) -> AsyncGenerator[AsyncGenerator[TranscriptEvent, None], None]:
    index = 0
    async with aclosing(pieces):
        async for piece in pieces:
            if isinstance(piece, RecordingEnd):
                yield _end(piece.seconds)
                continue
            yield _transcribe_piece(piece, respond(build_request(piece, index)))
            index += 1


async def _end(seconds: float) -> AsyncGenerator[TranscriptEvent, None]:
    yield TranscriptEnd(seconds)


async def _transcribe_piece(
    piece: RecordingPiece, answer: AsyncGenerator[Event, None]
) -> AsyncGenerator[TranscriptEvent, None]:
    texts: list[str] = []
    logprobs: list[TokenLogprob] = []
    async with aclosing(require_finished(answer)) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                texts.append(event.text)
                logprobs += event.logprobs
                yield TranscriptText(event.text)
            elif isinstance(event, Finished):
                yield TranscriptSegment(
                    *(piece.start, piece.end, "".join(texts).strip(), event.usage),
                    *(piece.probability, tuple(logprobs)),
                )


class _TextJoiner:
    """Joins the texts of segments: blanks at their ends become one, or none in Chinese."""

    def __init__(self) -> None:
        self._last = ""
        # Blanks that are shown only if more text of the segment follows.
        self._blanks = ""
        self._is_new = True

    def push(self, text: str) -> str:
        """Return what a part of a segment adds to the transcript."""
        text = self._blanks + text
        if self._is_new:
            text = text.lstrip()
        shown = text.rstrip()
        self._blanks = text[len(shown) :]
        if not shown:
            return ""
        separator = " " if self._is_new and _needs_blank(self._last, shown[0]) else ""
        self._is_new, self._last = False, shown[-1]
        return separator + shown

    def end_segment(self) -> None:
        """Begin a new segment."""
        self._blanks, self._is_new = "", True


def join_texts(texts: list[str]) -> str:
    """Return the transcript of segments with these texts, none of which has blanks around it."""
    joiner, joined = _TextJoiner(), []
    for text in texts:
        joined.append(joiner.push(text))
        joiner.end_segment()
    return "".join(joined)


def _needs_blank(before: str, after: str) -> bool:
    """Return whether a blank belongs between two characters: not between two of Chinese."""
    return bool(before) and not (_is_wide(before) and _is_wide(after))


def _is_wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in ("W", "F")
