"""Whose turn it is at the decoders: no tenant's files keep another's waiting for long."""

import asyncio
from contextlib import ExitStack

import pytest

from sglang_omni.engines.media_decoder.queue import DecoderQueue
from sglang_omni.protocol.errors import Overloaded


async def test_tenants_take_turns() -> None:
    queue: DecoderQueue[str] = DecoderQueue(max_waiting=8, max_videos=2)
    with ExitStack() as stack:
        crowd = [stack.enter_context(queue.join("image", "crowd")) for _ in range(4)]
        assert queue.assign("one")
        other = stack.enter_context(queue.join("image", "other"))
        assert queue.assign("two")
        assert crowd[0].result() == "one"
        assert other.result() == "two"


async def test_tenants_take_turns_at_a_single_decoder() -> None:
    queue: DecoderQueue[str] = DecoderQueue(max_waiting=8, max_videos=1)
    with ExitStack() as stack:
        crowd = [stack.enter_context(queue.join("video", "crowd")) for _ in range(3)]
        assert queue.assign("one")
        other = stack.enter_context(queue.join("video", "other"))
        queue.release("one")
        assert queue.assign("one")
        assert other.done()
        assert not crowd[1].done()


async def test_who_floods_the_queue_is_refused_and_nobody_else() -> None:
    queue: DecoderQueue[str] = DecoderQueue(max_waiting=4, max_videos=2)
    with ExitStack() as stack:
        crowd = [stack.enter_context(queue.join("image", "crowd")) for _ in range(4)]
        other = stack.enter_context(queue.join("image", "other"))
        queue.reject_excess()
        assert not other.done()
        with pytest.raises(Overloaded, match="4 requests wait"):
            await crowd[-1]


async def test_videos_leave_a_decoder_to_pictures() -> None:
    queue: DecoderQueue[str] = DecoderQueue(max_waiting=8, max_videos=1)
    with ExitStack() as stack:
        films = [stack.enter_context(queue.join("video", None)) for _ in range(2)]
        assert queue.assign("one")
        assert not queue.assign("two")
        picture = stack.enter_context(queue.join("image", None))
        assert queue.assign("two")
        assert picture.result() == "two"
        queue.release("one")
        assert queue.assign("one")
        assert films[1].result() == "one"


async def test_who_leaves_the_queue_is_not_served() -> None:
    queue: DecoderQueue[str] = DecoderQueue(max_waiting=8, max_videos=1)

    async def wait() -> None:
        with queue.join("video", None) as turn:
            await turn

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting})
    assert len(queue) == 0
    assert not queue.assign("one")
