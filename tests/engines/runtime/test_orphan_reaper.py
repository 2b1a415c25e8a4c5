"""No process of an engine outlives the server, however the server ends."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.engines.runtime.processes import ROOT, alive, eventually, group, running
from tests.engines.runtime.toy_workers import ToySettings

SERVER = """
import asyncio, json
from sglang_omni.engines.runtime.process import EngineProcess
from tests.engines.runtime.processes import toy_spec
from tests.engines.runtime.toy_workers import Count, ToySettings

async def main():
    engine = EngineProcess(toy_spec({kind!r}, ToySettings(grandchild=True)))
    await engine.start()
    info = engine.health.info
    print(json.dumps([info.pid, info.grandchild]), flush=True)
    async for _ in engine.submit(Count({upto}, fault={fault!r})):
        pass
    await asyncio.sleep(600)

asyncio.run(main())
"""


def reapers_of(engine: int) -> list[int]:
    """The engine's children that left its group, so that its killer does not meet them."""
    children = psutil.Process(engine).children()
    return [child.pid for child in children if os.getpgid(child.pid) == child.pid]


@pytest.mark.parametrize(
    ("kind", "fault"), [("step", ""), ("stream", ""), ("step", "hang")], ids=str
)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_death_of_the_server_leaves_no_process(
    kind: str, fault: str, number: signal.Signals
) -> None:
    code = SERVER.format(kind=kind, fault=fault, upto=10**9)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment
    ) as server:
        assert server.stdout is not None
        engine, grandchild = json.loads(server.stdout.readline())
        before, reapers = group(engine), reapers_of(engine)
        server.send_signal(number)
        assert sorted(before) == sorted([engine, grandchild])
        await eventually(lambda: group(engine) == [], within_s=3)
        assert not alive(grandchild)
        [reaper] = reapers
        await eventually(lambda: not alive(reaper), within_s=3)


async def test_the_server_kills_the_group_of_an_engine_that_lost_its_reaper() -> None:
    async with running("step", ToySettings(grandchild=True)) as engine:
        info = engine.health.info
        [reaper] = reapers_of(info.pid)
        os.kill(reaper, signal.SIGKILL)
        os.kill(info.pid, signal.SIGKILL)
        await eventually(lambda: group(info.pid) == [], within_s=3)


def test_a_reaper_is_out_of_reach_before_it_has_run() -> None:
    """Else the server, which kills a dead engine's group, kills it too where cores are busy."""
    code = """
import os, time, psutil
from sglang_omni.engines.runtime import orphan_reaper
orphan_reaper._run_reaper = lambda *_: time.sleep(600)
os.setpgid(0, 0)
orphan_reaper.fork_orphan_reaper()
[child] = psutil.Process().children()
print(os.getpgid(child.pid) == child.pid)
child.kill()
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert told.stdout == "True\n", told.stderr


async def test_an_engine_that_lost_its_reaper_leaves_no_shared_memory_at_its_stop() -> None:
    """So it goes where SGLang, told to shut down, kills every child, and takes its time to."""
    async with running("step", ToySettings(shared=True)) as engine:
        name = Path("/dev/shm") / engine.health.info.shared
        [reaper] = reapers_of(engine.health.info.pid)
        os.kill(reaper, signal.SIGKILL)
        assert name.exists()
        await engine.stop(deadline_s=0)
        assert not name.exists()


def test_an_engine_whose_parent_is_already_gone_does_not_start() -> None:
    ours, theirs = socket.socketpair()
    not_its_parent = os.getppid()
    with ours, theirs:
        descriptor = str(theirs.fileno())
        status = subprocess.call(
            [
                sys.executable,
                "-m",
                "sglang_omni.engines.runtime.engine_main",
                descriptor,
                str(not_its_parent),
            ],
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
            timeout=10,
        )
    assert status == -signal.SIGKILL


def test_engine_processes_need_no_torch_transformers_or_sglang() -> None:
    folder = Path(ROOT / "sglang_omni" / "engines" / "runtime")
    names = ["worker", "transport", "engine_main", "engine_connection", "subprocess", "process"]
    assert all((folder / f"{name}.py").exists() for name in names)
    imports = ", ".join(f"sglang_omni.engines.runtime.{name}" for name in names)
    heavy = "{'torch', 'transformers', 'sglang'}"
    code = f"import sys, {imports}; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.call([sys.executable, "-c", code]) == 0
