"""A file that ruins its decoder is alone in that, and costs the others nothing but time."""

import asyncio
import gc
import os
import pickle
import signal
import time
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio

from sglang_omni.engines.media_decoder import pool as pools
from sglang_omni.engines.media_decoder.contract import Decoded, MediaDecoderSettings
from sglang_omni.engines.media_decoder.pool import MediaDecoderPool
from sglang_omni.engines.runtime.process import EngineHealth
from sglang_omni.engines.runtime.shared_array import SharedArray
from sglang_omni.media.limits import Kind, MediaLimits, VideoOptions
from sglang_omni.protocol.errors import (
    EngineUnavailable,
    InvalidRequest,
    OmniError,
    Overloaded,
    StartupError,
)
from tests.engines.media_decoder.faulty import EXIT, HANG, HANG_LOCKED, SEGFAULT, SLOW, SLOW_S
from tests.engines.runtime.processes import alive, eventually
from tests.media.files import RULES, encoded, film, movie, picture, png, tone, wav

ROOT = Path(__file__).parents[3]
GOOD = encoded(picture())
LIMITS = MediaLimits(decode_seconds=1.5)


@pytest.fixture(autouse=True)
def faulty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files tell their decoder to go wrong."""
    monkeypatch.setattr(pools, "FACTORY", "tests.engines.media_decoder.faulty:open_faulty")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@asynccontextmanager
async def running(
    limits: MediaLimits = LIMITS, *, processes: int = 2, max_waiting: int = 64
) -> AsyncIterator[MediaDecoderPool]:
    """Run a pool, and check that none of its processes is left afterwards."""
    settings = MediaDecoderSettings(limits, RULES)
    pool = MediaDecoderPool(settings, processes=processes, max_waiting=max_waiting)
    await pool.start()
    try:
        yield pool
    finally:
        pids = [health.pid for health in healths(pool)]
        await pool.stop()
        assert not any(alive(pid) for pid in pids if pid is not None)
        assert (pool.in_flight, pool.num_waiting) == (0, 0)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared() -> AsyncIterator[MediaDecoderPool]:
    """One pool of one decoder for every test that leaves it alive."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pools, "FACTORY", "tests.engines.media_decoder.faulty:open_faulty")
        patch.setenv("PYTHONPATH", str(ROOT))
        async with running(processes=1) as pool:
            yield pool
            assert healths(pool)[0].restarts == 0


shares = pytest.mark.asyncio(loop_scope="module")


async def good(pool: MediaDecoderPool) -> None:
    """Decode a picture that is in order."""
    decoded, array = await pool.decode("image", [GOOD])
    assert array.read(decoded.layout).shape == (1, 64, 64, 3)


async def refused(pool: MediaDecoderPool, *files: bytes) -> str:
    """The reason why a picture is refused, in the name of its field."""
    with pytest.raises(InvalidRequest) as caught:
        await pool.decode("image", files)
    return caught.value.message


def healths(pool: MediaDecoderPool) -> list[EngineHealth]:
    return [process.health for process in pool.processes.values()]


def ready(pool: MediaDecoderPool) -> bool:
    return all(health.state == "ready" for health in healths(pool))


@shares
async def test_every_kind_is_decoded(shared: MediaDecoderPool) -> None:
    (image, pixels), (video, frames), (audio, samples) = await asyncio.gather(
        shared.decode("image", [GOOD]),
        shared.decode("video", [movie(30)]),
        shared.decode("audio", [wav(tone(0.5))]),
    )
    assert pixels.read(image.layout).dtype == np.uint8
    assert frames.read(video.layout).shape == (6, 320, 448, 3)
    assert len(video.seconds) == 3
    assert samples.read(audio.layout).shape == (8000,)


@shares
async def test_the_sound_of_a_video_is_decoded_if_it_has_one(shared: MediaDecoderPool) -> None:
    options = VideoOptions(sound="optional")
    sound = tone(1.5)[:, 0]
    for file, count in ((film(1.5, sound), len(sound)), (movie(15), 0)):
        decoded, array = await shared.decode("audio", [file], video=options)
        assert array.read(decoded.layout).shape == (count,)


@shares
async def test_a_request_chooses_the_frames_of_its_video(shared: MediaDecoderPool) -> None:
    decoded, _ = await shared.decode("video", [movie(30)], video=VideoOptions(4.0, 8))
    assert (decoded.layout.shape[0], len(decoded.seconds)) == (8, 4)


@shares
async def test_a_bad_file_is_refused_by_what_is_wrong_with_it(shared: MediaDecoderPool) -> None:
    assert "not an image" in await refused(shared, b"text")
    assert "100000000 pixels" in await refused(shared, png(50_000, 50_000, b""))
    assert ready(shared)
    await good(shared)


async def test_a_file_that_kills_its_decoder_fails_alone() -> None:
    async with running() as pool:
        results = await asyncio.gather(refused(pool, EXIT), *(good(pool) for _ in range(8)))
        assert results[0] == "the image cannot be decoded: it crashes the decoder"
        await eventually(lambda: ready(pool), within_s=10)
        assert sum(health.restarts for health in healths(pool)) == pools.MAX_DECODER_CRASHES


async def test_a_decoder_killed_by_the_system_costs_no_request() -> None:
    async with running() as pool:
        slow = asyncio.create_task(refused(pool, SLOW))
        await asyncio.sleep(0.2)
        victim = pool._engines[0].pid
        assert victim is not None
        assert pool.in_flight == 1
        os.kill(victim, signal.SIGKILL)
        # The other decoder was given the file: its own fault is found.
        assert "not an image" in await slow
        await good(pool)


@pytest.mark.parametrize("fault", [HANG, HANG_LOCKED])
async def test_a_file_that_takes_too_long_fails_alone(fault: bytes) -> None:
    async with running() as pool:
        began = time.monotonic()
        bad = asyncio.create_task(refused(pool, fault))
        await asyncio.gather(*(good(pool) for _ in range(8)))
        assert not bad.done()
        assert await bad == "the image could not be decoded within 1.5 s"
        assert time.monotonic() - began < 5


async def test_requests_wait_while_every_decoder_restarts() -> None:
    async with running() as pool:
        await asyncio.gather(refused(pool, EXIT), refused(pool, SEGFAULT))
        await good(pool)


async def test_a_decoder_that_died_at_rest_costs_no_request() -> None:
    async with running() as pool:
        for health in healths(pool):
            assert health.pid is not None
            os.kill(health.pid, signal.SIGKILL)
        await eventually(lambda: all(h.state == "restarting" for h in healths(pool)), within_s=3)
        await good(pool)


@shares
async def test_requests_are_served_in_the_order_of_asking(shared: MediaDecoderPool) -> None:
    done: list[int] = []

    async def numbered(number: int) -> None:
        await good(shared)
        done.append(number)

    await asyncio.gather(*(numbered(number) for number in range(12)))
    assert done == list(range(12))


async def test_more_waiting_than_allowed_is_refused() -> None:
    async with running(processes=1, max_waiting=2) as pool:
        results = await asyncio.gather(*(good(pool) for _ in range(5)), return_exceptions=True)
        assert [type(result) for result in results] == [type(None)] * 3 + [Overloaded] * 2
        await good(pool)


@shares
async def test_whoever_stops_waiting_leaves_the_queue(shared: MediaDecoderPool) -> None:
    slow = asyncio.create_task(refused(shared, SLOW))
    waiting = [asyncio.create_task(good(shared)) for _ in range(3)]
    await asyncio.sleep(0.1)
    assert shared.num_waiting == 3
    waiting[1].cancel()
    await asyncio.wait({waiting[1]})
    assert shared.num_waiting == 2
    await asyncio.gather(slow, waiting[0], waiting[2])


@shares
async def test_a_decoder_whose_client_has_gone_finishes_and_is_free_again(
    shared: MediaDecoderPool,
) -> None:
    slow = asyncio.create_task(refused(shared, SLOW))
    await asyncio.sleep(0.1)
    slow.cancel()
    await asyncio.wait({slow})
    assert slow.cancelled()
    assert shared.in_flight == 1
    began = time.monotonic()
    await good(shared)
    assert time.monotonic() - began < SLOW_S + 1
    assert healths(shared)[0].restarts == 0


@shares
async def test_cancelling_at_the_moment_of_being_served_loses_no_decoder(
    shared: MediaDecoderPool,
) -> None:
    for _ in range(20):
        first, second = asyncio.create_task(good(shared)), asyncio.create_task(good(shared))
        await first
        second.cancel()
        await asyncio.wait({second})
    await good(shared)
    await eventually(lambda: shared.in_flight == 0, within_s=2)


@pytest.mark.parametrize(
    ("kind", "files", "message"),
    [
        ("image", [], "the image is empty"),
        ("image", [b""], "the image is empty"),
        ("video", [GOOD, b""], "the video is empty"),
        ("image", [GOOD, GOOD], "a medium of kind image is one file, not 2"),
        ("audio", [bytes(1001)], "the audio has more than 1000 bytes"),
        ("video", [bytes(500), bytes(501)], "the video has more than 1000 bytes"),
    ],
)
async def test_what_is_no_medium_never_reaches_a_decoder(
    kind: Kind, files: list[bytes], message: str
) -> None:
    pool = MediaDecoderPool(MediaDecoderSettings(MediaLimits(file_bytes=1000), RULES))
    with pytest.raises(InvalidRequest, match=message):
        await pool.decode(kind, files)


async def test_a_pool_that_does_not_run_says_so() -> None:
    pool = MediaDecoderPool(MediaDecoderSettings(LIMITS, RULES))
    with pytest.raises(EngineUnavailable):
        await pool.decode("image", [GOOD])


async def test_stopping_fails_what_waits_and_what_works() -> None:
    async with running(processes=1) as pool:
        jobs = [asyncio.create_task(pool.decode("image", [file])) for file in (HANG, GOOD, GOOD)]
        await asyncio.sleep(0.2)
        await pool.stop(deadline_s=0.2)
        results = await asyncio.gather(*jobs, return_exceptions=True)
        assert [type(result) for result in results] == [EngineUnavailable] * 3


async def test_a_failing_start_leaves_no_process() -> None:
    pool = MediaDecoderPool(MediaDecoderSettings(MediaLimits(memory_bytes=1 << 20), RULES))
    with pytest.raises(StartupError, match="address space"):
        await pool.start()
    assert all(health.pid is None for health in healths(pool))


async def test_a_hostile_crowd_is_answered_while_good_requests_go_on() -> None:
    bad = [b"text", png(50_000, 50_000, b""), GOOD[:-60], EXIT, png(5_000, 5_000, b"")] * 3
    async with running() as pool:
        began = time.monotonic()
        hostile = [asyncio.create_task(refused(pool, file)) for file in bad]
        await asyncio.gather(*(good(pool) for _ in range(8)))
        assert all(await asyncio.gather(*hostile))
        assert time.monotonic() - began < 15


async def test_memory_comes_back() -> None:
    large = png(4_000, 4_000, zlib.compress(bytes(4_000 * 4_001), 1))
    async with running(MediaLimits()) as pool:
        await asyncio.gather(good(pool), good(pool))
        gc.collect()
        before, descriptors = memory(pool), len(os.listdir("/proc/self/fd"))
        for _ in range(3):
            decoded = await asyncio.gather(*(pool.decode("image", [large]) for _ in range(2)))
            assert all(result.layout.shape == (1, 4000, 4000, 3) for result, _ in decoded)
        assert memory(pool) - before < 64 << 20
        del decoded
        gc.collect()
        await eventually(lambda: len(os.listdir("/proc/self/fd")) <= descriptors, within_s=2)


def memory(pool: MediaDecoderPool) -> int:
    """Bytes that the decoding processes have in use."""
    pages = [Path(f"/proc/{health.pid}/statm").read_text().split()[1] for health in healths(pool)]
    return sum(map(int, pages)) * os.sysconf("SC_PAGE_SIZE")


def test_errors_of_the_decoders_survive_the_socket() -> None:
    error = pickle.loads(pickle.dumps(InvalidRequest("why", param="messages")))
    assert isinstance(error, OmniError)
    assert (error.message, error.param) == ("why", "messages")
    layout = Decoded(SharedArray().write(np.ones(3)), (0.5,))
    assert pickle.loads(pickle.dumps(layout)) == layout
