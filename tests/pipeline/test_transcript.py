"""Transcripts of pieces: their order, the blanks between them, and their sums."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import pytest

from sglang_omni.engines.thinker.contract import TokenLogprob
from sglang_omni.pipeline.recording import RecordingEnd, RecordingPiece
from sglang_omni.pipeline.request import (
    ChatRequest,
    Event,
    Finished,
    Message,
    Started,
    TextDelta,
    TextPart,
    Usage,
)
from sglang_omni.pipeline.transcript import (
    MAX_CONCURRENT_PIECES,
    TranscriptEnd,
    TranscriptEvent,
    TranscriptSegment,
    TranscriptText,
    join_texts,
    transcribe,
)
from sglang_omni.protocol.errors import EngineFailed, InvalidRequest
from sglang_omni.protocol.sampling import SamplingParams

pytestmark = pytest.mark.usefixtures("no_task_is_left")


async def pieces(count: int) -> AsyncGenerator[RecordingPiece | RecordingEnd, None]:
    for number in range(count):
        yield RecordingPiece(2.0 * number, 2.0 * number + 1, 0.9, 1.4, b"%d" % number)
    yield RecordingEnd(2.0 * count)


def build(piece: RecordingPiece, index: int) -> ChatRequest:
    message = Message("user", (TextPart(piece.content.decode()),))
    return ChatRequest(f"id-{index}", (message,), SamplingParams())


class Thinker:
    """Answers piece `n` with the deltas `texts[n]`, later pieces sooner."""

    def __init__(self, texts: Sequence[Sequence[str]]) -> None:
        self.texts, self.running, self.peak = texts, 0, 0

    async def respond(self, request: ChatRequest) -> AsyncGenerator[Event, None]:
        (part,) = request.messages[0].content
        assert isinstance(part, TextPart)
        number = int(part.text)
        self.running += 1
        self.peak = max(self.peak, self.running)
        try:
            yield Started()
            await asyncio.sleep(0.02 / (number + 1))
            for text in self.texts[number]:
                yield TextDelta(text, (TokenLogprob(number, -0.5),))
            yield Finished("stop", Usage(10, completion_tokens=2, prompt_audio_tokens=8))
        finally:
            self.running -= 1


async def events_of(thinker: Thinker) -> list[TranscriptEvent]:
    work = transcribe(pieces(len(thinker.texts)), build, thinker.respond)
    return [event async for event in work]


async def test_texts_come_in_the_order_of_the_recording() -> None:
    thinker = Thinker([[" The", " mill "], ["turns."], [], [" Good ", "bye. "], ["x"], ["y"]])
    events = await events_of(thinker)
    text = "".join(event.text for event in events if isinstance(event, TranscriptText))
    assert text == "The mill turns. Good bye. x y"
    segments = [event for event in events if isinstance(event, TranscriptSegment)]
    assert [segment.text for segment in segments] == [
        "The mill",
        "turns.",
        "",
        "Good bye.",
        "x",
        "y",
    ]
    assert join_texts([segment.text for segment in segments]) == text
    assert [segment.start for segment in segments] == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    assert [token.token_id for token in segments[3].logprobs] == [3, 3]
    assert events[-1] == TranscriptEnd(12.0)
    assert thinker.peak == MAX_CONCURRENT_PIECES


async def test_chinese_has_no_blanks_between_segments() -> None:
    events = await events_of(Thinker([["你好，"], [" 世界。"], ["OK"], ["好"]]))
    text = "".join(event.text for event in events if isinstance(event, TranscriptText))
    assert text == "你好，世界。 OK 好"


async def test_a_recording_without_speech_only_ends() -> None:
    assert await events_of(Thinker([])) == [TranscriptEnd(0.0)]


async def test_an_error_of_a_piece_ends_the_transcript() -> None:
    class Broken(Thinker):
        async def respond(self, request: ChatRequest) -> AsyncGenerator[Event, None]:
            async for event in super().respond(request):
                if request.id == "id-1" and isinstance(event, Finished):
                    raise EngineFailed("the thinker died")
                yield event

    thinker = Broken([["a"], ["b"], ["c"]])
    with pytest.raises(EngineFailed, match="died"):
        await events_of(thinker)
    assert thinker.running == 0


async def test_an_error_of_the_recording_ends_the_transcript() -> None:
    async def broken() -> AsyncGenerator[RecordingPiece | RecordingEnd, None]:
        async for piece in pieces(1):
            if isinstance(piece, RecordingEnd):
                raise InvalidRequest("file: broken", param="file")
            yield piece

    texts = []
    with pytest.raises(InvalidRequest):
        async for event in transcribe(broken(), build, Thinker([["a"]]).respond):
            texts.append(event)
    assert TranscriptText("a") in texts


async def test_a_client_that_leaves_stops_all_pieces() -> None:
    class Hanging(Thinker):
        async def respond(self, request: ChatRequest) -> AsyncGenerator[Event, None]:
            async for event in super().respond(request):
                yield event
                if isinstance(event, TextDelta):
                    await asyncio.Event().wait()

    thinker = Hanging([["a", "b"]] * 20)
    async with aclosing(transcribe(pieces(20), build, thinker.respond)) as events:
        await anext(events)
        assert thinker.running == MAX_CONCURRENT_PIECES
    assert thinker.running == 0
