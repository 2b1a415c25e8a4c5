"""A rank that dies while its engine starts ends the start, with a reason, and leaves nothing."""

import asyncio
import os
import signal
import time
from typing import Any

import psutil
import pytest

from sglang_omni.config.load import load_config
from sglang_omni.engines.runtime.process import EngineProcess, ProcessSpec
from sglang_omni.engines.runtime.shm_cleanup import iter_group_pids
from sglang_omni.protocol.errors import StartupError
from sglang_omni.serving.engine_config import build_encoder_specs
from sglang_omni.serving.thinker_config import build_thinker_spec
from tests.testing.golden import TINY

ENDS_WITHIN_S = 30.0
SPAWNED_WITHIN_S = 120.0
# Before and after SGLang gives its processes names.
SCHEDULERS = ("spawn_main", "sglang::scheduler")


def thinker(ranks: int) -> ProcessSpec:
    return build_thinker_spec(load_config(None, {"device": "cpu", "thinker.tp_size": ranks}), TINY)


def encoders(ranks: int) -> ProcessSpec:
    config = load_config(None, {"device": "cpu", "image_encoder.tp_size": ranks})
    return build_encoder_specs(config, TINY)["image"][0]


def ranks_of(engine: EngineProcess, marks: tuple[str, ...]) -> list[psutil.Process]:
    family = psutil.Process(engine.pid).children(recursive=True)
    return [one for one in family if any(part in command_of(one) for part in marks)]


def command_of(process: psutil.Process) -> str:
    """Empty for one that has ended meanwhile: a start has helpers that soon do."""
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=lambda one: one.name)
@pytest.mark.parametrize(
    ("make", "ranks", "marks"),
    [(thinker, 1, SCHEDULERS), (thinker, 2, SCHEDULERS), (encoders, 2, ("encoder.vision_rank",))],
    ids=["thinker", "thinker-tp2", "encoders-tp2"],
)
async def test_a_rank_that_dies_at_the_start_ends_it(
    make: Any, ranks: int, marks: tuple[str, ...], number: signal.Signals
) -> None:
    engine = EngineProcess(make(ranks))
    starting = asyncio.create_task(engine.start())
    deadline = time.monotonic() + SPAWNED_WITHIN_S
    expected = ranks if make is thinker else ranks - 1
    while engine.pid is None or len(ranks_of(engine, marks)) < expected:
        assert time.monotonic() < deadline
        assert not starting.done()
        await asyncio.sleep(0.1)
    pid = engine.pid
    await asyncio.sleep(1.0)  # Until the engine has looked whom it has to look after.
    died_at = time.monotonic()
    os.kill(ranks_of(engine, marks)[-1].pid, number)
    with pytest.raises(StartupError) as told:
        await starting
    print(f"{time.monotonic() - died_at:.1f} s: {told.value.message[:200]}")
    assert time.monotonic() - died_at < ENDS_WITHIN_S
    assert engine.health.state == "failed"
    assert not list(iter_group_pids(pid))
