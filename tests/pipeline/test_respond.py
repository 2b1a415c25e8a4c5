"""The pipeline over engines that play scripts: what is said, when, and how it ends."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from typing import Any

import numpy as np
import pytest

from sglang_omni.engines.runtime.process import Engine
from sglang_omni.engines.thinker.contract import FinishReason, ThinkerOutput, ThinkerRequest
from sglang_omni.pipeline.media_preprocessor import MediaInput
from sglang_omni.pipeline.request import (
    AudioDelta,
    ChatRequest,
    Event,
    Finished,
    MediaPart,
    Message,
    ReasoningDelta,
    SpeechRequest,
    Started,
    TextDelta,
    TextPart,
    TranscriptDelta,
    Usage,
    Voice,
)
from sglang_omni.pipeline.respond import Engines, Pipeline
from sglang_omni.pipeline.segment import SegmentSettings, SystemClock
from sglang_omni.pipeline.speech import RequestUsage, Speaker, speak_stream
from sglang_omni.protocol.errors import EngineFailed, InvalidRequest
from sglang_omni.protocol.sampling import SamplingParams
from tests.pipeline.engines import (
    SPEECH,
    TEXT_ONLY,
    NoEngine,
    ScriptedEngine,
    admit_all,
    end_of,
    script_answer,
    script_hum,
    script_silence,
)
from tests.testing.clock import FakeClock
from tests.testing.family import CHAT, FRAME_S, RATE, SPEECH_TEXT, VOICES, Tokens, split_fragments

pytestmark = pytest.mark.usefixtures("no_task_is_left")

CONTEXT = 512
VOICE = Voice(VOICES[0], seed=5)
SENTENCE = "The river runs slowly past the old stone mill. "
LONG = [word + " " for word in (SENTENCE * 6).split()]
CHINESE = list("今天天气很好，我们一起去公园散步吧。小河边的柳树长出了新的叶子！鸟儿在唱歌。")


Texts = TextDelta | ReasoningDelta | TranscriptDelta
Answer = Callable[..., Awaitable[tuple[list[Event], list[Any]]]]


def chat(
    voice: Voice | None = VOICE,
    thinking: bool = False,
    text: str = "Tell me a story.",
    **sampling: Any,
) -> ChatRequest:
    messages = (Message("user", (TextPart(text),)),)
    return ChatRequest("chat", messages, SamplingParams(**sampling), voice, thinking)


def make_pipeline(
    tokenizer: Tokens,
    thinker: Engine | None,
    talker: Engine | None,
    clock: FakeClock | None = None,
) -> Pipeline:
    return Pipeline(
        TEXT_ONLY, admit_all(thinker, talker), CHAT, CONTEXT, SegmentSettings(), clock, **SPEECH
    )


@pytest.fixture
def answer(tokenizer: Tokens) -> Answer:
    """All events of a chat whose thinker says `texts`, one every 50 ms, and the talker's asks."""

    async def run(
        texts: list[str], request: ChatRequest, **script: Any
    ) -> tuple[list[Event], list[Any]]:
        clock = FakeClock() if request.voice else None
        thinker = ScriptedEngine(script_answer(tokenizer, texts, clock=clock, pace=0.05, **script))
        talker = ScriptedEngine(script_hum())
        pipeline = make_pipeline(tokenizer, thinker, talker, clock)
        async with asyncio.timeout(10):
            events = [event async for event in pipeline.respond(request)]
        assert thinker.open == talker.open == 0
        started, *events = events
        assert started == Started()
        assert [isinstance(event, Finished) for event in events].index(True) == len(events) - 1
        return events, talker.requests

    return run


def joined(events: Iterable[Event], kind: type[Texts]) -> str:
    return "".join(event.text for event in events if isinstance(event, kind))


def turns_of(request: ChatRequest) -> Any:
    """Without media, messages are turns of a prompt."""
    return request.messages


def positions(events: Iterable[Event], kind: type[Event]) -> list[int]:
    return [i for i, event in enumerate(events) if isinstance(event, kind)]


async def take_until(events: AsyncGenerator[Event, None], *kinds: type[Event]) -> list[Event]:
    """Events up to the first that makes every one of `kinds` seen."""
    seen: list[Event] = []
    missing = set(kinds)
    while missing:
        seen.append(await asyncio.wait_for(anext(events), 5))
        missing.discard(type(seen[-1]))
    return seen


async def test_text_only_never_touches_the_talker(answer: Answer) -> None:
    events, asked = await answer(LONG, chat(voice=None))
    assert asked == []
    assert [event.text for event in events if isinstance(event, TextDelta)] == LONG
    assert {type(event) for event in events[:-1]} == {TextDelta}


async def test_text_is_not_delayed_by_a_slow_talker(tokenizer: Tokens) -> None:
    thinker, talker = ScriptedEngine(script_answer(tokenizer, LONG)), ScriptedEngine(script_silence)
    async with aclosing(make_pipeline(tokenizer, thinker, talker).respond(chat())) as events:
        seen: list[Event] = []
        while joined(seen, TextDelta) != "".join(LONG):
            seen.append(await asyncio.wait_for(anext(events), 5))
        assert len(positions(seen, TranscriptDelta)) == 1
        assert talker.open == 1


@pytest.mark.parametrize("texts", [LONG, CHINESE, ["One word"]], ids=["en", "zh", "short"])
async def test_text_and_transcript_each_join_to_the_answer(
    answer: Answer, texts: list[str]
) -> None:
    events, _ = await answer(texts, chat())
    assert joined(events, TextDelta) == "".join(texts)
    assert joined(events, TranscriptDelta).rstrip() == "".join(texts).rstrip()


@pytest.mark.parametrize("texts", [LONG, CHINESE], ids=["en", "zh"])
async def test_each_fragment_of_each_segment_is_one_numbered_talker_request(
    answer: Answer, texts: list[str]
) -> None:
    events, asked = await answer(texts, chat())
    segments = [event.text for event in events if isinstance(event, TranscriptDelta)]
    assert len(segments) > 2
    expected = [text for segment in segments for text in split_fragments(segment)]
    assert [request.text for request in asked] == expected
    assert [request.segment for request in asked] == [*range(len(expected))]
    assert {(request.voice, request.seed) for request in asked} == {(VOICE.name, VOICE.seed)}


async def test_audio_comes_in_the_order_of_the_segments_after_their_transcripts(
    answer: Answer,
) -> None:
    events, asked = await answer(LONG, chat())
    audio = [event.pcm for event in events if isinstance(event, AudioDelta)]
    # Each hums its number, faded at its ends.
    heights = [pcm.max() for pcm in audio]
    assert len(heights) == len(asked)
    assert heights == sorted(set(heights))
    spoken = [event for event in events if isinstance(event, TranscriptDelta | AudioDelta)]
    kinds = [type(event) for event in spoken]
    assert kinds == [TranscriptDelta, AudioDelta] * len(asked)


async def test_the_first_audio_comes_before_the_last_text_of_a_long_answer(answer: Answer) -> None:
    events, _ = await answer(LONG, chat())
    first_audio = positions(events, AudioDelta)[0]
    assert first_audio < positions(events, TextDelta)[-1]
    # 450 ms are nine words, and the talker needs a few turns to speak.
    assert len([i for i in positions(events, TextDelta) if i < first_audio]) < 15


async def test_a_thought_is_told_apart_and_not_spoken(answer: Answer) -> None:
    texts = ["<th", "ink>", "A secret plan. " * 5, "</thi", "nk>\n", "\n", *LONG]
    events, asked = await answer(texts, chat(thinking=True))
    assert joined(events, TextDelta) == "".join(LONG)
    assert joined(events, ReasoningDelta) == ("A secret plan. " * 5).strip()
    usage = end_of(events).usage
    assert 0 < usage.reasoning_tokens < usage.completion_tokens
    assert joined(events, TranscriptDelta).rstrip() == "".join(LONG).rstrip()
    assert not any("secret" in request.text for request in asked)


async def test_a_thought_is_told_apart_even_if_the_model_was_not_asked_to_think(
    answer: Answer,
) -> None:
    events, _ = await answer(["<think>a plan</think> ", "and an answer."], chat())
    assert joined(events, ReasoningDelta) == "a plan"
    assert joined(events, TextDelta) == joined(events, TranscriptDelta) == "and an answer."


@pytest.mark.parametrize("thinking", [False, True])
async def test_the_thinker_is_asked_with_the_rendered_chat(
    tokenizer: Tokens, thinking: bool
) -> None:
    thinker = ScriptedEngine(script_answer(tokenizer, ["Yes."]))
    request = chat(voice=None, thinking=thinking, temperature=0.5, seed=9)
    async for _ in make_pipeline(tokenizer, thinker, None).respond(request):
        pass
    (asked,) = thinker.requests
    assert asked.input_ids == CHAT.tokenize(turns_of(request), thinking).ids
    assert asked.sampling == SamplingParams(
        temperature=0.5, seed=9, max_tokens=CONTEXT - len(asked.input_ids)
    )


@pytest.mark.parametrize("voice", [None, VOICE], ids=["text", "speech"])
async def test_a_stop_string_ends_text_speech_and_the_work_of_the_thinker(
    answer: Answer, voice: Voice | None
) -> None:
    """The engine would hang: what it does after the stop string is nobody's business."""
    texts = ["The answer", " is yes. EN", "D and more", " and more"]
    events, _ = await answer(texts, chat(voice, stop=("END",)), finish=None)
    assert joined(events, TextDelta) == "The answer is yes. "
    assert joined(events, TranscriptDelta) == ("The answer is yes. " if voice else "")
    assert end_of(events).reason == "stop"


async def test_a_stop_string_in_the_last_token_that_was_allowed_is_a_stop(answer: Answer) -> None:
    events, _ = await answer(["Yes. ", "END"], chat(None, stop=("END",)), finish="length")
    assert end_of(events).reason == "stop"


async def test_what_was_held_for_a_stop_string_that_did_not_come_is_shown_and_spoken(
    answer: Answer,
) -> None:
    events, _ = await answer(["Yes. ", "EN"], chat(stop=("END",)))
    assert joined(events, TextDelta) == joined(events, TranscriptDelta) == "Yes. EN"


@pytest.mark.parametrize("reason", ["stop", "length"])
@pytest.mark.parametrize("voice", [None, VOICE], ids=["text", "speech"])
async def test_finish_reason_and_usage(
    tokenizer: Tokens, answer: Answer, voice: Voice | None, reason: FinishReason
) -> None:
    request = chat(voice)
    events, asked = await answer(LONG, request, finish=reason, cached=3)
    prompt = CHAT.tokenize(turns_of(request)).ids
    tokens = sum(len(tokenizer.encode_text(text)) for text in LONG)
    assert bool(asked) == bool(voice)
    assert events[-1] == Finished(reason, Usage(len(prompt), 3, tokens, 2 * len(asked)))


async def test_an_error_of_the_talker_is_raised_after_the_thinker_was_closed(
    tokenizer: Tokens,
) -> None:
    thinker = ScriptedEngine(script_answer(tokenizer, LONG, finish=None))
    talker = ScriptedEngine(script_hum(then=EngineFailed("talker died")))
    events = make_pipeline(tokenizer, thinker, talker).respond(chat())
    await take_until(events, TextDelta)
    assert thinker.open == 1
    with pytest.raises(EngineFailed, match="talker died"):
        await take_until(events, Finished)
    assert thinker.open == talker.open == 0


async def test_an_error_of_the_thinker_is_raised_after_the_talker_was_closed(
    tokenizer: Tokens,
) -> None:
    died = asyncio.Event()

    async def script(request: ThinkerRequest) -> AsyncGenerator[ThinkerOutput, None]:
        async for output in script_answer(tokenizer, LONG, finish=None, then=None)(request):
            yield output
            if output.completion_tokens > 50:
                await died.wait()
                raise EngineFailed("thinker died")

    thinker, talker = ScriptedEngine(script), ScriptedEngine(script_silence)
    events = make_pipeline(tokenizer, thinker, talker).respond(chat())
    await take_until(events, TranscriptDelta)
    while not talker.open:
        await asyncio.sleep(0.001)
    died.set()
    with pytest.raises(EngineFailed, match="thinker died"):
        await take_until(events, Finished)
    assert thinker.open == talker.open == 0


@pytest.mark.parametrize("voice", [None, VOICE], ids=["text", "speech"])
async def test_closing_early_closes_the_engines_at_once(
    tokenizer: Tokens, voice: Voice | None
) -> None:
    thinker = ScriptedEngine(script_answer(tokenizer, LONG, finish=None))
    talker = ScriptedEngine(script_hum(patches=10_000))
    events = make_pipeline(tokenizer, thinker, talker).respond(chat(voice))
    await take_until(events, *([TextDelta, AudioDelta] if voice else [TextDelta]))
    assert (thinker.open, talker.open) == (1, 1 if voice else 0)
    await events.aclose()
    assert thinker.open == talker.open == 0


async def test_cancelling_the_reader_closes_the_engines_at_once(
    tokenizer: Tokens,
) -> None:
    thinker = ScriptedEngine(script_answer(tokenizer, LONG, finish=None))
    talker = ScriptedEngine(script_silence)

    async def read() -> None:
        async with aclosing(make_pipeline(tokenizer, thinker, talker).respond(chat())) as events:
            async for _ in events:
                pass

    reading = asyncio.create_task(read())
    while not (thinker.open and talker.open):
        await asyncio.sleep(0.001)
    reading.cancel()
    await asyncio.wait({reading}, timeout=5)
    assert reading.cancelled()
    assert thinker.open == talker.open == 0


async def test_a_prompt_that_fills_the_context_is_refused_before_any_engine_works(
    tokenizer: Tokens,
) -> None:
    thinker, talker = ScriptedEngine(script_silence), ScriptedEngine(script_silence)
    events = make_pipeline(tokenizer, thinker, talker).respond(chat(text="word " * CONTEXT))
    with pytest.raises(InvalidRequest, match=f"the context has {CONTEXT}") as refused:
        await anext(events)
    assert refused.value.param == "messages"
    assert thinker.requests == talker.requests == []


@pytest.mark.parametrize("asked_for", [1, 10, CONTEXT, 10**9])
async def test_max_tokens_is_bounded_by_what_the_context_leaves(
    tokenizer: Tokens, asked_for: int
) -> None:
    thinker = ScriptedEngine(script_answer(tokenizer, ["Yes."]))
    request = chat(voice=None, max_tokens=asked_for)
    async for _ in make_pipeline(tokenizer, thinker, None).respond(request):
        pass
    (asked,) = thinker.requests
    assert asked.sampling.max_tokens == min(asked_for, CONTEXT - len(asked.input_ids))


async def test_a_prompt_may_leave_room_for_one_token(tokenizer: Tokens) -> None:
    thinker = ScriptedEngine(script_answer(tokenizer, ["Yes."]))
    request = chat(voice=None)
    length = len(CHAT.tokenize(turns_of(request)).ids)
    for context, room in ((length + 1, 1), (length, 0)):
        pipeline = Pipeline(
            TEXT_ONLY, admit_all(thinker, None), CHAT, context, SegmentSettings(), **SPEECH
        )
        if room:
            assert [event async for event in pipeline.respond(request)]
            assert thinker.requests[-1].sampling.max_tokens == room
        else:
            with pytest.raises(InvalidRequest):
                await anext(pipeline.respond(request))


async def test_an_answer_without_a_word_is_shown_and_asks_for_no_speech(answer: Answer) -> None:
    events, asked = await answer(["😀 ", "🚀"], chat())
    assert joined(events, TextDelta) == "😀 🚀"
    assert (positions(events, AudioDelta), asked) == ([], [])


async def test_closing_speech_in_the_middle_of_a_segment_closes_its_text() -> None:
    closed = asyncio.Event()

    async def words() -> AsyncGenerator[str, None]:
        try:
            for word in LONG:
                yield word
        finally:
            closed.set()

    talker = ScriptedEngine(script_hum(patches=10_000))
    speech = speak_stream(
        Speaker(talker, SPEECH_TEXT, FRAME_S, VOICE.name, VOICE.seed, RATE),
        words(),
        SegmentSettings(),
        SystemClock(),
        RequestUsage(),
    )
    await take_until(speech, AudioDelta)
    await speech.aclose()
    assert closed.is_set()
    assert talker.open == 0


async def test_a_text_is_read_fragment_by_fragment(tokenizer: Tokens) -> None:
    talker = ScriptedEngine(script_hum(patches=3))
    text = SENTENCE * 20
    speech = make_pipeline(tokenizer, None, talker).speak(SpeechRequest("say", text, VOICE))
    *audio, finished = [event async for event in speech]
    expected = split_fragments(text)
    assert [request.text for request in talker.requests] == expected
    assert [request.segment for request in talker.requests] == [*range(len(expected))]
    assert len(expected) > 2
    order = np.concatenate([event.pcm for event in audio if isinstance(event, AudioDelta)])
    heights = order.reshape(-1, 30).max(axis=1).tolist()
    assert len(heights) == len(expected)
    assert heights == sorted(set(heights))
    assert finished == Finished("stop", Usage(audio_tokens=3 * len(expected)))


@pytest.mark.parametrize("text", ["", " \n", "😀", "..."])
async def test_a_text_without_a_word_is_refused(tokenizer: Tokens, text: str) -> None:
    talker = ScriptedEngine(script_silence)
    with pytest.raises(InvalidRequest) as refused:
        await anext(make_pipeline(tokenizer, None, talker).speak(SpeechRequest("x", text, VOICE)))
    assert refused.value.param == "input"
    assert talker.requests == []


async def test_closing_a_reading_early_closes_the_talker(tokenizer: Tokens) -> None:
    talker = ScriptedEngine(script_hum(patches=10_000))
    speech = make_pipeline(tokenizer, None, talker).speak(SpeechRequest("x", SENTENCE, VOICE))
    await take_until(speech, AudioDelta)
    assert talker.open == 1
    await speech.aclose()
    assert talker.open == 0


async def test_a_chat_is_admitted_once_its_media_are_there(tokenizer: Tokens) -> None:
    opening, admitted = asyncio.Event(), list[ChatRequest | SpeechRequest]()

    class Slow:
        async def open(self, part: MediaPart, **_: object) -> MediaInput:
            await opening.wait()
            raise InvalidRequest("cannot be decoded")

        async def encode(self, medium: MediaInput) -> None:
            raise AssertionError("there is none")

    def admit(request: ChatRequest | SpeechRequest) -> AbstractAsyncContextManager[Engines]:
        admitted.append(request)
        thinker = ScriptedEngine(script_answer(tokenizer, ["Yes."]))
        return nullcontext(Engines(thinker, NoEngine()))

    slow_media: Any = Slow()
    pipeline = Pipeline(slow_media, admit, CHAT, CONTEXT, SegmentSettings(), **SPEECH)
    seen = (Message("user", (MediaPart("image", ("data:,",), "images.0"), TextPart("What?"))),)
    slow = asyncio.ensure_future(anext(pipeline.respond(ChatRequest("1", seen, SamplingParams()))))
    await asyncio.sleep(0.01)
    assert not slow.done()
    assert not admitted
    assert [event async for event in pipeline.respond(chat(voice=None))]
    assert len(admitted) == 1
    opening.set()
    with pytest.raises(InvalidRequest):
        await slow
    assert len(admitted) == 1
