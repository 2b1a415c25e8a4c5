"""What a server holds at one moment: slots, cache, memory, files, tasks."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import httpx
import psutil

from sglang_omni.engines.runtime.shm_cleanup import find_mapped_inodes

# What must be zero in every engine that has it when nothing is asked.
BUSY = ("active_slots", "waiting", "running", "kv_tokens_used", "admitted", "queued")
CACHED = ("image_cache_entries", "audio_cache_entries")
SLACK_BYTES, SLACK_PART = 48 << 20, 1.15


@dataclass(frozen=True)
class State:
    """Of the server's processes by name ("api" and the engines): resident bytes and open files.

    `busy` are counters that should be zero, `arrays` memory without a name beyond what the caches
    hold, `shared` pieces of named shared memory, `tasks` those of the API's event loop.
    """

    rss: dict[str, int]
    files: dict[str, int]
    busy: dict[str, float]
    restarts: int
    arrays: int
    shared: int
    tasks: int


def look(url: str) -> State:
    """The state of the server at `url`, on this machine."""
    with httpx.Client(base_url=url, timeout=10) as http:
        engines: dict[str, Any] = http.get("/health").json()["engines"]
        metrics = http.get("/metrics").text
    pids = {name: engine["pid"] for name, engine in engines.items()}
    processes = {name: psutil.Process(pid) for name, pid in pids.items() if pid}
    processes["api"] = next(iter(processes.values())).parent() or psutil.Process()
    cached = sum(engine["counters"].get(name, 0) for engine in engines.values() for name in CACHED)
    arrays = _arrays(processes["api"].pid)
    files = {name: one.num_fds() for name, one in processes.items()}
    files["api"] -= arrays  # These are counted apart, since caches may hold some.
    return State(
        rss={name: _resident(one) for name, one in processes.items()},
        files=files,
        busy={
            f"{name}.{counter}": value
            for name, engine in engines.items()
            for counter, value in engine["counters"].items()
            if counter in BUSY and value
        },
        restarts=sum(engine["restarts"] for engine in engines.values()),
        arrays=arrays - int(cached),
        shared=sum(len(find_mapped_inodes(pid)) for pid in pids.values() if pid),
        tasks=int(float(metrics.split("\nsgl_omni_tasks ")[1].split()[0])),
    )


def settled(url: str, like: State | None, seconds: float = 20.0) -> State:
    """The state once nothing is under way, and as few files and tasks are left as in `like`; or
    whatever it is after `seconds`."""
    state = look(url)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not _quiet(state, like):
        time.sleep(0.5)
        state = look(url)
    return state


def complaints(before: State, after: State) -> list[str]:
    """What did not return to its start."""
    found = [f"still busy: {name} = {value:g}" for name, value in after.busy.items()]
    if after.restarts != before.restarts:
        found.append(f"{after.restarts - before.restarts} restarts")
    for name, had in before.rss.items():
        if after.rss[name] > had * SLACK_PART + SLACK_BYTES:
            found.append(f"{name} grew from {had >> 20} to {after.rss[name] >> 20} MiB")
    for name, opened in before.files.items():
        if after.files[name] > opened:
            found.append(f"{name} had {opened} files open and has {after.files[name]}")
    pairs: list[tuple[str, Callable[[State], int]]] = [
        ("arrays", lambda state: state.arrays),
        ("pieces of shared memory", lambda state: state.shared),
        ("tasks", lambda state: state.tasks),
    ]
    for name, count in pairs:
        if count(after) > count(before):
            found.append(f"{count(before)} {name} became {count(after)}")
    return found


def _quiet(state: State, like: State | None) -> bool:
    return not state.busy and (like is None or not complaints(like, state))


def _resident(process: psutil.Process) -> int:
    family = [process, *process.children(recursive=True)] if process.ppid() else [process]
    # The API's children are the engines, which count for themselves.
    own = family if "engine.host" in " ".join(process.cmdline()) else family[:1]
    return sum(int(one.memory_info().rss) for one in own)


def _arrays(pid: int) -> int:
    count = 0
    for name in os.listdir(f"/proc/{pid}/fd"):
        with suppress(OSError):
            count += "memfd:sgl-omni" in os.readlink(f"/proc/{pid}/fd/{name}")
    return count
