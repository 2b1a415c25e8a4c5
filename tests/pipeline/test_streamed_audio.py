"""With the real talker: what streams out is what a complete answer holds, whoever else is there.

Tolerance: 1e-4 of full scale in float32, since a batch adds up in an order of its own.
"""

import asyncio
import itertools
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager

import numpy as np
import pytest

from sglang_omni.engines.runtime.process import Engine
from sglang_omni.engines.runtime.worker import StepInput
from sglang_omni.engines.speech.contract import TalkerChunk, TalkerRequest, TalkerSettings
from sglang_omni.engines.speech.worker import TalkerWorker
from sglang_omni.media.encode import FULL_SCALE, OutputAudioEncoder
from sglang_omni.media.wav import HEADER_BYTES
from sglang_omni.pipeline.request import (
    AudioDelta,
    ChatRequest,
    Message,
    SpeechRequest,
    TextPart,
    TranscriptDelta,
    Voice,
)
from sglang_omni.pipeline.respond import Pipeline
from sglang_omni.pipeline.segment import SegmentSettings
from sglang_omni.pipeline.segment_fader import SegmentFader
from sglang_omni.protocol.sampling import SamplingParams
from tests.pipeline.engines import (
    SPEECH,
    TEXT_ONLY,
    LocalTalker,
    ScriptedEngine,
    admit_all,
    script_answer,
)
from tests.testing.clock import FakeClock
from tests.testing.family import CHAT, CHECKPOINT, FAMILY, RATE, VOICES, Tokens, split_fragments

pytestmark = pytest.mark.usefixtures("no_task_is_left")

TOLERANCE = 1e-4
SLOTS = 8
OTHERS = (0, SLOTS - 1)
VOICE = Voice(VOICES[0], seed=11)
SENTENCES = (
    "Hello there, my friend, and welcome to the mill. ",
    "今天天气很好，我们去河边走走吧。",
    "It was built in 1867 and has ground corn for 3.5 generations since. ",
)
TEXT = "".join(SENTENCES)
# A Chinese character with its mark, or a word with its blank.
WORD = re.compile(r"[\u4e00-\u9fff][，。]?|[^\s\u4e00-\u9fff]+ ")


MakeWorker = Callable[[], TalkerWorker]
TalkerAmong = Callable[[int], AbstractAsyncContextManager[LocalTalker]]
SpokenWhole = Callable[[Sequence[str]], np.ndarray]


@pytest.fixture(scope="module")
def make_worker() -> MakeWorker:
    settings = TalkerSettings(CHECKPOINT, slots=SLOTS)
    model = FAMILY.load_speech_model(CHECKPOINT, settings.device, settings.dtype)
    return lambda: TalkerWorker(model, settings)


@asynccontextmanager
async def company(talker: LocalTalker, count: int) -> AsyncIterator[None]:
    """Keeps `count` other requests in the talker's batch, each at a phase of its own."""

    async def chatter(number: int) -> None:
        for turn in itertools.count():
            request = TalkerRequest(SENTENCES[number % 3], VOICES[-1], number, turn)
            async with aclosing(talker.submit(request)) as chunks:
                async for _ in chunks:
                    pass

    others = [asyncio.create_task(chatter(number)) for number in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.cancel()
        await asyncio.gather(*others, return_exceptions=True)


@pytest.fixture
def talker_among(make_worker: MakeWorker) -> TalkerAmong:
    """A talker with `others` more in its batch, which must have been as wide as it was meant."""

    @asynccontextmanager
    async def opened(others: int) -> AsyncIterator[LocalTalker]:
        async with LocalTalker(make_worker()) as talker, company(talker, others):
            yield talker
        assert talker.widest == 1 + others

    return opened


@pytest.fixture
def spoken_whole(make_worker: MakeWorker) -> SpokenWhole:
    """The samples of a list of fragments, spoken one after the other by a worker of their own."""

    def speak(texts: Sequence[str]) -> np.ndarray:
        worker, pcm = make_worker(), []
        for number, text in enumerate(texts):
            request = TalkerRequest(text, VOICE.name, VOICE.seed, number)
            results = worker.step(StepInput(arrivals=(("only", request),)))
            while worker.busy:
                results += worker.step(StepInput())
            chunks = [chunk for _, chunk in results if isinstance(chunk, TalkerChunk)]
            assert len(chunks) == len(results)
            whole = np.concatenate([chunk.pcm for chunk in chunks])
            pcm.append(SegmentFader(RATE, has_previous=number > 0).push(whole, last=True))
        return np.concatenate(pcm)

    return speak


def assert_same_audio(actual: np.ndarray, expected: np.ndarray) -> None:
    assert actual.shape == expected.shape
    assert np.abs(expected).max() > 0.05, "silence proves nothing"
    assert np.abs(actual - expected).max() < TOLERANCE


def samples_of(file: bytes) -> np.ndarray:
    return np.frombuffer(file[HEADER_BYTES:], "<i2") / FULL_SCALE


def encoded(pieces: Sequence[np.ndarray], rate: int, streaming: bool) -> tuple[list[bytes], bytes]:
    """The bytes that each piece brought, and those of the end."""
    encoder = OutputAudioEncoder("wav", RATE, rate, streaming)
    return [encoder.push(piece) for piece in pieces], encoder.finish()


@pytest.mark.parametrize("others", OTHERS)
async def test_streamed_speech_equals_the_complete_file(
    spoken_whole: SpokenWhole, tokenizer: Tokens, talker_among: TalkerAmong, others: int
) -> None:
    """`/v1/audio/speech`: chunk by chunk through a streaming encoder, and in one piece."""
    async with talker_among(others) as talker:
        pipeline = Pipeline(
            TEXT_ONLY, admit_all(None, talker), CHAT, 1, SegmentSettings(), **SPEECH
        )
        events = [event async for event in pipeline.speak(SpeechRequest("speech", TEXT, VOICE))]
    pieces = [event.pcm for event in events if isinstance(event, AudioDelta)]
    expected = spoken_whole(split_fragments(TEXT))
    assert_same_audio(np.concatenate(pieces), expected)
    for rate in (RATE, 24_000):
        sent, rest = encoded(pieces, rate, streaming=True)
        assert sum(map(bool, sent)) > len(SENTENCES)
        streamed = b"".join([*sent, rest])
        early, complete = encoded([expected], rate, streaming=False)
        assert early == [b""]
        assert len(streamed) == len(complete)
        # Rounding to 16 bits may turn a difference below the tolerance into one step.
        error = np.abs(samples_of(streamed) - samples_of(complete)).max()
        assert error < TOLERANCE + 1 / FULL_SCALE


async def replay(tokenizer: Tokens, talker: Engine) -> tuple[list[str], list[np.ndarray]]:
    """Transcript and pieces of audio of one chat; its thinker says a word every 60 ms."""
    clock = FakeClock()
    thinker = ScriptedEngine(script_answer(tokenizer, WORD.findall(TEXT), clock=clock, pace=0.06))
    pipeline = Pipeline(
        TEXT_ONLY, admit_all(thinker, talker), CHAT, 512, SegmentSettings(), clock, **SPEECH
    )
    messages = (Message("user", (TextPart("Tell me about the mill."),)),)
    request = ChatRequest("chat", messages, SamplingParams(), VOICE)
    events = [event async for event in pipeline.respond(request)]
    segments = [event.text for event in events if isinstance(event, TranscriptDelta)]
    return segments, [event.pcm for event in events if isinstance(event, AudioDelta)]


async def test_a_replayed_chat_streams_what_its_segments_are_spoken_whole(
    spoken_whole: SpokenWhole, tokenizer: Tokens, talker_among: TalkerAmong
) -> None:
    takes = []
    for others in OTHERS:
        async with talker_among(others) as talker:
            takes.append(await replay(tokenizer, talker))
    (segments, alone), (again, among_others) = takes
    assert again == segments
    assert len(segments) > 2
    spoken = [text for segment in segments for text in split_fragments(segment)]
    expected = spoken_whole(spoken)
    for pieces in (alone, among_others):
        assert len(pieces) > len(spoken)
        assert_same_audio(np.concatenate(pieces), expected)
