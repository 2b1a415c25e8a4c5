"""The stages of a request for images, with scripted engines."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Any

import numpy as np
import pytest

from sglang_omni.engines.image.contract import DrawnImage, DrawProgress, DrawRequest
from sglang_omni.engines.media_decoder.memory import MediaMemory
from sglang_omni.engines.runtime.shared_array import SharedArray
from sglang_omni.engines.thinker.contract import ThinkerOutput, ThinkerRequest
from sglang_omni.models.chat import TokenizedPrompt, Turn
from sglang_omni.models.image import ImagePlan, ImagePrompt, Size
from sglang_omni.pipeline.draw import ImagePipeline, QueryRows
from sglang_omni.pipeline.image_request import (
    CompletedImage,
    ImageEvent,
    ImageRequest,
    ImagesFinished,
    ImageStep,
    PartialImage,
)
from sglang_omni.pipeline.request import Message, TextPart
from sglang_omni.protocol.errors import ContextExceeded, EngineFailed, InvalidRequest, Overloaded
from sglang_omni.queueing.policy import Capacity
from sglang_omni.queueing.queue import AdmissionQueue, QueueRules
from tests.pipeline.engines import TEXT_ONLY, ScriptedEngine
from tests.testing.family import CHAT

pytestmark = pytest.mark.usefixtures("no_task_is_left")
STATES = np.arange(8, dtype=np.float32).reshape(2, 4)


class FakeImageFormat:
    """Two query tokens behind a prompt of three tokens; every image has one token a pixel."""

    query_rows = np.zeros((2, 4), np.float32)

    def __init__(self) -> None:
        self.prompts: list[str] = []
        self.long: str | None = None

    def build_prompt(self, messages: list[Turn]) -> ImagePrompt:
        text = messages[-1].content[-1]
        assert isinstance(text, TextPart)
        self.prompts.append(text.text)
        ids = (1, 2, 3, 7, 6, 6, 8)
        prompt = TokenizedPrompt(ids * 2 if text.text == self.long else ids)
        return ImagePrompt(prompt, f"<{text.text}>", (4, 5), (1, 2, 4))

    def plan(
        self, size: Size | None, aspect: float | None, resolution: int, reference: Size | None
    ) -> ImagePlan:
        if size == (1, 9):
            raise InvalidRequest("too narrow", param="size")
        height, width = size or (resolution, resolution)
        return ImagePlan((height, width), height * width)

    def fit_resolution(self, size: Size) -> int:
        return 512


async def think(request: ThinkerRequest) -> AsyncGenerator[ThinkerOutput, None]:
    assert request.query is not None
    layout = request.query.states.write(STATES)
    yield ThinkerOutput((5,), len(request.input_ids), 0, 1, "length", query_states=layout)


async def paint(request: DrawRequest) -> AsyncGenerator[Any, None]:
    """Draw the states' sum plus the seed, with a preview of zeros after the first step."""
    value = int(request.states.read(request.states_layout).sum()) + request.seed
    for step in (1, 2):
        await asyncio.sleep(0)
        preview = None
        if request.previews and step == 1:
            preview = 0, request.previews[0].write(np.zeros((2, 2, 3), np.uint8))
        yield DrawProgress(step, 2, preview)
    yield DrawnImage(request.pixels.write(np.full((2, 2, 3), value, np.uint8)))


class Drawing:
    """A pipeline over scripted engines, which counts what is admitted."""

    def __init__(
        self,
        thinker: Any = think,
        image: Any = paint,
        context: int = 100,
        queue: AdmissionQueue | None = None,
    ) -> None:
        self.queue = queue
        self.thinker, self.image = ScriptedEngine(thinker), ScriptedEngine(image)
        self.admitted = {"thinker": 0, "image": 0}
        rows = SharedArray()
        self.format = FakeImageFormat()
        self.pipeline = ImagePipeline(
            TEXT_ONLY,
            lambda _: self.admit("thinker", self.thinker),
            lambda _: self.admit("image", self.image),
            CHAT,
            self.format,  # type: ignore[arg-type]
            QueryRows(rows, rows.write(FakeImageFormat.query_rows)),
            context,
            MediaMemory(1 << 20),
        )

    @asynccontextmanager
    async def admit(self, name: str, engine: ScriptedEngine) -> AsyncIterator[ScriptedEngine]:
        async with AsyncExitStack() as stack:
            if self.queue is not None and name == "image":
                await stack.enter_async_context(self.queue.admit(None, "normal"))
            self.admitted[name] += 1
            try:
                yield engine
            finally:
                self.admitted[name] -= 1

    async def draw(self, request: ImageRequest) -> list[ImageEvent]:
        return [event async for event in self.pipeline.draw(request)]


def image_request(*seeds: int, **fields: Any) -> ImageRequest:
    messages = (Message("user", (TextPart("a mill"),)),)
    return ImageRequest("1", messages, seeds, **{"size": (2, 2), **fields})


async def test_one_prefill_serves_all_images() -> None:
    drawing = Drawing()
    events = await drawing.draw(image_request(1, 2, 3))
    images = {event.index: event for event in events if isinstance(event, CompletedImage)}
    assert {index: int(image.pixels[0, 0, 0]) for index, image in images.items()} == {
        0: 29,
        1: 30,
        2: 31,
    }
    assert [images[index].seed for index in range(3)] == [1, 2, 3]
    assert images[0].usage.output_tokens == 4
    (thought,) = drawing.thinker.requests
    assert thought.input_ids == (1, 2, 3, 7, 6, 6, 8)
    assert thought.query.embeddings.offsets == ((4, 5),)
    assert thought.query.embeddings.grid == ((1, 2, 4),)
    orders: list[DrawRequest] = drawing.image.requests
    assert {order.prompt for order in orders} == {"<a mill>"}
    last = events[-1]
    assert isinstance(last, ImagesFinished)
    assert (last.usage.text_tokens, last.usage.image_tokens) == (3, 0)
    assert last.usage.output_tokens == 12
    assert drawing.admitted == {"thinker": 0, "image": 0}


async def test_a_negative_prompt_has_states_of_its_own() -> None:
    written: list[np.ndarray] = []

    async def think_each(request: ThinkerRequest) -> AsyncGenerator[ThinkerOutput, None]:
        assert request.query is not None
        # Never two at a time: the request holds one of the thinker's places.
        assert drawing.admitted["thinker"] == 1
        written.append(STATES + 10 * len(written))
        layout = request.query.states.write(written[-1])
        yield ThinkerOutput((5,), len(request.input_ids), 0, 1, "length", query_states=layout)

    drawing = Drawing(thinker=think_each)
    events = await drawing.draw(image_request(1, 2, negative_prompt="snow"))
    assert len(written) == 2
    for order in drawing.image.requests:
        assert order.negative_states is not None
        assert order.negative_layout is not None
        assert np.array_equal(order.states.read(order.states_layout), written[0])
        assert np.array_equal(order.negative_states.read(order.negative_layout), written[1])
    assert drawing.format.prompts == ["a mill", "snow"]
    last = events[-1]
    assert isinstance(last, ImagesFinished)
    assert last.usage.text_tokens == 6


async def test_a_negative_prompt_beyond_the_context_is_refused_by_its_name() -> None:
    drawing = Drawing(context=8)
    drawing.format.long = "snow"
    with pytest.raises(ContextExceeded) as error:
        await drawing.draw(image_request(1, negative_prompt="snow"))
    assert error.value.param == "negative_prompt"


async def test_the_query_tokens_of_two_requests_have_different_hashes() -> None:
    drawing = Drawing()
    for _ in range(2):
        await drawing.draw(image_request(1))
    hashes = {request.query.embeddings.content_hash for request in drawing.thinker.requests}
    assert len(hashes) == 2


async def test_progress_and_previews_are_told() -> None:
    events = await Drawing().draw(image_request(1, previews=1))
    assert [type(event) for event in events] == [
        ImageStep,
        PartialImage,
        ImageStep,
        CompletedImage,
        ImagesFinished,
    ]
    assert isinstance(events[1], PartialImage)
    assert events[1].pixels.shape == (2, 2, 3)


async def test_a_size_that_cannot_be_drawn_asks_no_engine() -> None:
    drawing = Drawing()
    with pytest.raises(InvalidRequest, match="too narrow"):
        await drawing.draw(image_request(1, size=(1, 9)))
    assert drawing.thinker.requests == drawing.image.requests == []


async def test_a_prompt_beyond_the_context_is_refused() -> None:
    with pytest.raises(ContextExceeded) as error:
        await Drawing(context=7).draw(image_request(1))
    assert error.value.param == "prompt"


async def test_a_thinker_without_states_is_an_error() -> None:
    async def answer(request: ThinkerRequest) -> AsyncGenerator[ThinkerOutput, None]:
        yield ThinkerOutput((5,), 7, 0, 1, "length")

    with pytest.raises(EngineFailed, match="no states"):
        await Drawing(thinker=answer).draw(image_request(1))


async def test_a_failed_image_ends_the_request_and_its_other_images() -> None:
    async def fail(request: DrawRequest) -> AsyncGenerator[Any, None]:
        if request.seed == 2:
            raise EngineFailed("the step failed")
        yield DrawProgress(1, 2)
        await asyncio.Event().wait()

    drawing = Drawing(image=fail)
    with pytest.raises(EngineFailed, match="the step failed"):
        await drawing.draw(image_request(1, 2))
    assert drawing.image.open == 0
    assert drawing.admitted == {"thinker": 0, "image": 0}


def image_queue(length: int, wait_s: float = 5.0) -> AdmissionQueue:
    """The queue of an engine with one place."""
    return AdmissionQueue("image engine", lambda: Capacity(1), QueueRules(length, wait_s))


async def paint_slowly(request: DrawRequest) -> AsyncGenerator[Any, None]:
    await asyncio.sleep(0.1)
    async for output in paint(request):
        yield output


@pytest.mark.parametrize("length", [0, 1, 2])
async def test_images_of_a_request_do_not_refuse_each_other(length: int) -> None:
    drawing = Drawing(queue=image_queue(length))
    events = await drawing.draw(image_request(*range(4)))
    assert sum(isinstance(event, CompletedImage) for event in events) == 4


async def test_an_image_may_wait_for_those_of_its_own_request() -> None:
    drawing = Drawing(image=paint_slowly, queue=image_queue(1, wait_s=0.03))
    events = await drawing.draw(image_request(1, 2, 3))
    assert sum(isinstance(event, CompletedImage) for event in events) == 3


async def test_images_are_refused_for_those_of_others() -> None:
    queue = image_queue(0)
    drawing = Drawing(queue=queue)
    async with queue.admit("another", "normal"):
        with pytest.raises(Overloaded):
            await drawing.draw(image_request(1, 2))
    counters = queue.counters()
    assert (counters["admitted"], counters["queued"]) == (0, 0)
    assert drawing.admitted == {"thinker": 0, "image": 0}


async def test_a_request_has_one_image_in_the_queue() -> None:
    queue = image_queue(8)
    drawing = Drawing(image=paint_slowly, queue=queue)
    task = asyncio.create_task(drawing.draw(image_request(1, 2, 3, 4)))
    async with asyncio.timeout(5):
        while queue.counters()["admitted"] == 0:
            await asyncio.sleep(0.001)
        for _ in range(50):
            assert queue.counters()["queued"] <= 1
            await asyncio.sleep(0.001)
        await task


async def test_a_client_that_leaves_closes_the_engines_streams() -> None:
    async def never_end(request: DrawRequest) -> AsyncGenerator[Any, None]:
        yield DrawProgress(1, 2)
        await asyncio.Event().wait()

    drawing = Drawing(image=never_end)
    async with aclosing(drawing.pipeline.draw(image_request(1, 2))) as events:
        await anext(events)
    assert drawing.image.open == 0
    assert drawing.admitted == {"thinker": 0, "image": 0}
