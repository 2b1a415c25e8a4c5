"""The running encoder engines give the released model's features: one rank, two ranks, audio."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
import torch

from sglang_omni.engines.encoder.contract import (
    AudioEncodeRequest,
    EncoderInfo,
    EncoderSettings,
    VisionEncodeRequest,
)
from sglang_omni.engines.encoder.launch import build_environment
from sglang_omni.engines.runtime.process import EngineProcess, ProcessSpec
from sglang_omni.protocol.errors import EngineFailed, EngineUnavailable, InvalidRequest
from tests.engines.encoder.requests import clip, encode, picture
from tests.engines.runtime.processes import eventually
from tests.models.ming.encoders.cases import CLIPS, IMAGES, SEVERAL, frames, samples
from tests.testing.golden import TINY, assert_close, load_case

BATCH_TOLERANCE = 1e-5
FACTORY = "sglang_omni.engines.encoder.worker:open_worker"

pytestmark = pytest.mark.asyncio(loop_scope="module")


def engine(**changes: Any) -> EngineProcess:
    settings = EncoderSettings(TINY, threads=1, **changes)
    return EngineProcess(ProcessSpec("encoder", FACTORY, settings, build_environment(settings, 1)))


async def running(process: EngineProcess) -> AsyncIterator[EngineProcess]:
    await process.start()
    yield process
    await process.stop()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def one_rank() -> AsyncIterator[EngineProcess]:
    async for process in running(engine()):
        yield process


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def two_ranks() -> AsyncIterator[EngineProcess]:
    # So few that videos are split.
    async for process in running(engine(tp_size=2, audio=False, max_patches=64)):
        yield process


async def counters(process: EngineProcess) -> dict[str, float]:
    """Counters that are as new as the last answer: the next beat may have begun before it."""
    for _ in range(2):
        await next_heartbeat(process)
    return dict(process.health.counters)


async def next_heartbeat(process: EngineProcess) -> None:
    seen = process.health.counters
    await eventually(lambda: process.health.counters is not seen, within_s=15)


async def picture_case(process: EngineProcess, name: str) -> None:
    case = load_case(name)
    rows = await asyncio.gather(*(encode(process, picture(part)) for part in frames(case)))
    case.check("features", torch.cat(rows))


@pytest.mark.parametrize("name", IMAGES + SEVERAL)
async def test_pictures_agree(name: str, one_rank: EngineProcess) -> None:
    await picture_case(one_rank, name)


@pytest.mark.parametrize("name", CLIPS)
async def test_clips_agree(name: str, one_rank: EngineProcess) -> None:
    case = load_case(name)
    case.check("features", await encode(one_rank, clip(samples(case))))


@pytest.mark.parametrize("name", IMAGES + SEVERAL)
async def test_pictures_agree_on_two_ranks(name: str, two_ranks: EngineProcess) -> None:
    await picture_case(two_ranks, name)


async def test_two_ranks_give_what_one_gives(
    one_rank: EngineProcess, two_ranks: EngineProcess
) -> None:
    frames = torch.randint(0, 256, (6, 96, 160, 3), dtype=torch.uint8)
    before = (await counters(two_ranks))["batches"]
    one = await encode(one_rank, picture(frames))
    assert_close(await encode(two_ranks, picture(frames)), one, BATCH_TOLERANCE)
    assert (await counters(two_ranks))["batches"] - before == 3


async def test_features_do_not_depend_on_who_else_is_encoded(one_rank: EngineProcess) -> None:
    pictures = [
        torch.randint(0, 256, (1, 32 * (1 + n % 3), 64, 3), dtype=torch.uint8) for n in range(6)
    ]
    clips = [torch.randn(2000 + 700 * n) / 4 for n in range(5)]
    alone = [await encode(one_rank, picture(one)) for one in pictures]
    alone += [await encode(one_rank, clip(one)) for one in clips]
    before = (await counters(one_rank))["batches"]
    requests: list[VisionEncodeRequest | AudioEncodeRequest]
    requests = [*(picture(one) for one in pictures), *(clip(one) for one in clips)]
    together = await asyncio.gather(*(encode(one_rank, request) for request in requests))
    # The first to arrive may go alone, the others share.
    assert 2 <= (await counters(one_rank))["batches"] - before < len(requests)
    for one, other in zip(together, alone, strict=True):
        assert_close(one, other, BATCH_TOLERANCE)


async def test_bad_requests_fail_alone_and_say_why(one_rank: EngineProcess) -> None:
    good = torch.zeros(1, 64, 64, 3, dtype=torch.uint8)
    nan = torch.full((4000,), float("nan"))
    bad: dict[str, VisionEncodeRequest | AudioEncodeRequest] = {
        "multiple of 32": picture(torch.zeros(1, 60, 64, 3, dtype=torch.uint8)),
        "uint8": picture(torch.zeros(1, 64, 64, 3)),
        "finite": clip(nan),
        "the minimum is": clip(torch.zeros(100)),
        "the maximum is 30 s": clip(torch.zeros(31 * 16_000)),
        "float32": clip(np.zeros(4000)),
    }
    requests = [*bad.values(), picture(good)]
    outcome = await asyncio.gather(*(encode(one_rank, r) for r in requests), return_exceptions=True)
    for error, why in zip(outcome, bad, strict=False):
        assert isinstance(error, InvalidRequest)
        assert why in error.message
    assert isinstance(outcome[-1], torch.Tensor)


async def test_counters_tell_what_was_encoded(one_rank: EngineProcess) -> None:
    before = await counters(one_rank)
    await encode(one_rank, picture(torch.zeros(4, 32, 64, 3, dtype=torch.uint8)))
    await encode(one_rank, clip(torch.zeros(8000)))
    after = await counters(one_rank)
    grown = {name: after[name] - before[name] for name in after}
    wanted = {"images": 1, "frames": 4, "patches": 16, "audio_clips": 1, "audio_seconds": 0.5}
    assert {name: grown[name] for name in wanted} == wanted
    assert grown["batches"] == 2
    assert grown["busy_seconds"] > 0
    assert after["waiting"] == 0
    assert one_rank.health.info == EncoderInfo(hidden=192, dtype="float32")


async def test_an_audio_engine_answers_in_bfloat16() -> None:
    async for process in running(engine(images=False, dtype="bfloat16")):
        case = load_case(CLIPS[-1])
        rows = (await encode(process, clip(samples(case)))).view(torch.bfloat16).float()
        # Rounding to eight bits in every layer.
        assert_close(rows, case["features"], 0.05)
        with pytest.raises(InvalidRequest, match="VisionEncodeRequest"):
            await encode(process, picture(torch.zeros(1, 32, 32, 3, dtype=torch.uint8)))


@pytest.mark.parametrize("settings", ["device='cpu'", "device='cpu', images=False"])
async def test_one_rank_on_a_cpu_never_imports_sglang(settings: str) -> None:
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from sglang_omni.engines.encoder.contract import EncoderSettings\n"
        "from sglang_omni.engines.encoder.worker import open_worker\n"
        f"open_worker(EncoderSettings(Path({str(TINY)!r}), {settings}, threads=1))\n"
        "print([name for name in sys.modules if name.partition('.')[0] in ('sglang', 'triton')])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


def ranks_of(pid: int) -> list[int]:
    """Processes of the engine `pid` that are ranks, itself left out."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            ours = os.getpgid(int(path.parent.name)) == pid
            if ours and b"sglang_omni.engines.encoder.vision_rank" in path.read_bytes():
                found.append(int(path.parent.name))
        except (ProcessLookupError, FileNotFoundError):
            continue
    return found


async def test_a_dead_rank_is_the_death_of_its_engine(two_ranks: EngineProcess) -> None:
    (rank,) = ranks_of(two_ranks.pid or 0)
    engine_pid = two_ranks.pid
    os.kill(rank, signal.SIGSTOP)  # It no longer takes part, so that the request is held up.
    waiting = asyncio.create_task(
        encode(two_ranks, picture(torch.zeros(1, 64, 64, 3, dtype=torch.uint8)))
    )
    await asyncio.sleep(0.5)
    assert not waiting.done()
    os.kill(rank, signal.SIGKILL)
    async with asyncio.timeout(10):
        with pytest.raises((EngineFailed, EngineUnavailable)):
            await waiting
        # Said once the whole process group is gone.
        while two_ranks.health.error is None:
            await asyncio.sleep(0.05)
    assert two_ranks.health.state == "restarting"
    assert ranks_of(engine_pid or 0) == []
