"""Which engine a request is admitted to, and for how long."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from sglang_omni.admission.controller import (
    TOKENS_PER_MEDIUM,
    AdmissionController,
    estimate_kv_tokens,
    talker_capacity,
)
from sglang_omni.engines.image.contract import ImageEngineInfo
from sglang_omni.engines.speech.contract import TalkerInfo
from sglang_omni.engines.thinker.contract import ThinkerInfo
from sglang_omni.media.limits import VideoOptions
from sglang_omni.pipeline.image_request import ImageRequest
from sglang_omni.pipeline.request import (
    ChatRequest,
    Event,
    Finished,
    MediaPart,
    Message,
    SpeechRequest,
    TextDelta,
    TextPart,
    Usage,
    Voice,
)
from sglang_omni.protocol.errors import DeadlineExceeded, Overloaded
from sglang_omni.protocol.sampling import SamplingParams
from sglang_omni.queueing.policy import Capacity
from sglang_omni.queueing.queue import QueueRules

VOICE = Voice("river", 1)


def engine(info: Any) -> Any:
    return SimpleNamespace(health=SimpleNamespace(info=info, state="ready", counters={}))


def make_controller(
    queue: int = 0, timeout_s: float = 10.0, cache: int = 10_000
) -> AdmissionController:
    processes = {
        "thinker": [engine(ThinkerInfo(4096, max_total_tokens=cache, max_running_requests=2))],
        "talker": [engine(TalkerInfo(44_100, 0.32, ("river",), slots=1))],
    }
    return AdmissionController(processes, QueueRules(queue, 5.0), timeout_s)


def drawing(max_images: int, queue: int = 0) -> AdmissionController:
    image = [engine(ImageEngineInfo(max_images, 4, "float32"))] * 2
    processes: dict[str, list[Any]] = {"thinker": [], "talker": [], "image": image}
    return AdmissionController(processes, QueueRules(queue, 5.0), 10.0)


async def test_each_image_takes_a_place_of_the_image_engine() -> None:
    controller = drawing(max_images=1)
    request = ImageRequest("1", (), (1,))
    async with controller.admit_image(request), controller.admit_image(request):
        assert controller.counters()["image"]["admitted"] == 2
        with pytest.raises(Overloaded, match="image engine is at capacity"):
            async with controller.admit_image(request):
                pass
    assert controller.counters()["image"] == {"admitted": 0, "queued": 0, "rejected": 1}
    assert "image" not in make_controller().counters()


def chat(voice: Voice | None = None, text: str = "hello", **terms: Any) -> ChatRequest:
    messages = (Message("user", (TextPart(text),)),)
    return ChatRequest("1", messages, SamplingParams(max_tokens=100), voice, **terms)


def test_a_prompt_of_tokens_is_counted_exactly() -> None:
    raw = ChatRequest("1", (), SamplingParams(max_tokens=100), prompt_ids=(1,) * 70)
    assert estimate_kv_tokens(raw) == 170


async def endless() -> AsyncGenerator[Event, None]:
    yield TextDelta("a")
    await asyncio.sleep(60)
    yield Finished("stop", Usage())


def serve(
    one: AdmissionController, request: ChatRequest | SpeechRequest
) -> AsyncGenerator[Event, None]:
    """An answer without end, once it is admitted."""

    async def admitted() -> AsyncGenerator[Event, None]:
        async with one.admit(request), aclosing(endless()) as events:
            async for event in events:
                yield event

    return one.with_timeout(request, admitted())


def held(one: AdmissionController) -> tuple[float, float]:
    counters = one.counters()
    return counters["thinker"]["admitted"], counters["talker"]["admitted"]


@pytest.mark.parametrize(
    ("request_", "engines"),
    [
        (chat(), (1, 0)),
        (chat(VOICE), (1, 1)),
        (SpeechRequest("1", "hello", VOICE), (0, 1)),
    ],
)
async def test_a_request_is_admitted_to_the_engines_it_needs(
    request_: Any, engines: tuple[int, int]
) -> None:
    one = make_controller()
    async with aclosing(serve(one, request_)) as events:
        await anext(events)
        assert held(one) == engines
    assert held(one) == (0, 0)


async def test_a_full_talker_refuses_speech_and_not_text() -> None:
    one = make_controller()
    async with aclosing(serve(one, SpeechRequest("1", "hello", VOICE))) as speech:
        await anext(speech)
        for refused in (SpeechRequest("2", "hello", VOICE), chat(VOICE)):
            with pytest.raises(Overloaded, match="talker"):
                await anext(serve(one, refused))
        async with aclosing(serve(one, chat())) as text:
            assert await anext(text) == TextDelta("a")
    assert held(one) == (0, 0)


async def test_a_full_cache_refuses_before_the_slots_are_taken() -> None:
    one = make_controller(cache=300)
    async with aclosing(serve(one, chat())) as first:
        await anext(first)
        with pytest.raises(Overloaded, match="thinker"):
            await anext(serve(one, chat(text="word " * 100)))


@pytest.mark.parametrize(("asked", "given"), [(0.05, 10.0), (None, 0.05), (5.0, 0.05)])
async def test_no_request_takes_longer_than_it_asked_for_or_may(
    asked: float | None, given: float
) -> None:
    one = make_controller(timeout_s=given)
    with pytest.raises(DeadlineExceeded):
        async for _ in serve(one, chat(timeout_s=asked)):
            pass
    assert held(one) == (0, 0)


@pytest.mark.parametrize(
    ("state", "known"),
    [
        ("ready", True),
        ("unresponsive", True),
        ("restarting", False),
        ("draining", False),
        ("standby", False),
    ],
)
def test_only_an_engine_that_is_down_lets_everybody_through_to_its_error(
    state: str, known: bool
) -> None:
    talker = engine(TalkerInfo(44_100, 0.32, ("river",), slots=3))
    talker.health.state = state
    assert talker_capacity([talker]) == (Capacity(3) if known else None)
    other = engine(TalkerInfo(44_100, 0.32, ("river",), slots=5))
    assert talker_capacity([talker, other]) == Capacity(8 if known else 5)


def test_prompts_media_and_answers_count() -> None:
    picture = MediaPart("image", ("data:,",), "images.0")
    seen = ChatRequest("1", (Message("user", (TextPart("a" * 300), picture)),), SamplingParams())
    assert estimate_kv_tokens(seen) == 100 + 1024 + 512
    assert estimate_kv_tokens(chat()) == 1 + 100
    film = MediaPart("video", ("data:,",), "videos.0")
    both = replace(film, video=VideoOptions(sound="optional"))
    silent, heard = (
        estimate_kv_tokens(ChatRequest("1", (Message("user", (one,)),), SamplingParams()))
        for one in (film, both)
    )
    assert heard - silent == TOKENS_PER_MEDIUM["audio"]
