"""The resources of a server at one moment: slots, caches, memory, files and tasks."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import httpx
import psutil

from sglang_omni.engines.runtime.shm_cleanup import find_mapped_inodes

# Counters that must be zero in an idle engine.
BUSY_COUNTERS = ("active_slots", "waiting", "running", "kv_tokens_used", "admitted", "queued")
CACHE_COUNTERS = ("image_cache_entries", "audio_cache_entries")
SLACK_BYTES, SLACK_PART = 48 << 20, 1.15


@dataclass(frozen=True)
class ServerState:
    """The resources of the server's processes.

    `rss` (bytes) and `files` (open files) are by process: "api" and the engines. `busy` are
    counters that should be zero. `arrays` is the number of memfds beyond those of the caches,
    `shared` that of named shared-memory segments, `tasks` that of the API's asyncio tasks.
    """

    rss: dict[str, int]
    files: dict[str, int]
    busy: dict[str, float]
    restarts: int
    arrays: int
    shared: int
    tasks: int


def read_state(url: str) -> ServerState:
    """Read the state of the server at `url`, on this machine."""
    with httpx.Client(base_url=url, timeout=10) as http:
        engines: dict[str, Any] = http.get("/health").json()["engines"]
        metrics = http.get("/metrics").text
    pids = {name: engine["pid"] for name, engine in engines.items()}
    processes = {name: psutil.Process(pid) for name, pid in pids.items() if pid}
    processes["api"] = next(iter(processes.values())).parent() or psutil.Process()
    cached = sum(
        engine["counters"].get(name, 0) for engine in engines.values() for name in CACHE_COUNTERS
    )
    arrays = _count_memfds(processes["api"].pid)
    files = {name: process.num_fds() for name, process in processes.items()}
    files["api"] -= arrays  # Memfds are counted separately, since caches may hold some.
    return ServerState(
        rss={name: _resident_bytes(process) for name, process in processes.items()},
        files=files,
        busy={
            f"{name}.{counter}": value
            for name, engine in engines.items()
            for counter, value in engine["counters"].items()
            if counter in BUSY_COUNTERS and value
        },
        restarts=sum(engine["restarts"] for engine in engines.values()),
        arrays=arrays - int(cached),
        shared=sum(len(find_mapped_inodes(pid)) for pid in pids.values() if pid),
        tasks=int(float(metrics.split("\nsgl_omni_tasks ")[1].split()[0])),
    )


def wait_until_settled(
    url: str, baseline: ServerState | None, seconds: float = 20.0
) -> ServerState:
    """Return the state once nothing is running, with no more files and tasks than `baseline`.

    After `seconds` the current state is returned.
    """
    state = read_state(url)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not _is_settled(state, baseline):
        time.sleep(0.5)
        state = read_state(url)
    return state


def find_leaks(before: ServerState, after: ServerState) -> list[str]:
    """Return messages about what did not return to its start."""
    leaks = [f"still busy: {name} = {value:g}" for name, value in after.busy.items()]
    if after.restarts != before.restarts:
        leaks.append(f"{after.restarts - before.restarts} restarts")
    for name, rss_before in before.rss.items():
        if after.rss[name] > rss_before * SLACK_PART + SLACK_BYTES:
            leaks.append(f"{name} grew from {rss_before >> 20} to {after.rss[name] >> 20} MiB")
    for name, files_before in before.files.items():
        if after.files[name] > files_before:
            leaks.append(f"{name} had {files_before} files open and has {after.files[name]}")
    counts: list[tuple[str, Callable[[ServerState], int]]] = [
        ("arrays", lambda state: state.arrays),
        ("shared-memory segments", lambda state: state.shared),
        ("tasks", lambda state: state.tasks),
    ]
    for name, count in counts:
        if count(after) > count(before):
            leaks.append(f"{count(before)} {name} became {count(after)}")
    return leaks


def _is_settled(state: ServerState, baseline: ServerState | None) -> bool:
    return not state.busy and (baseline is None or not find_leaks(baseline, state))


def _resident_bytes(process: psutil.Process) -> int:
    family = [process, *process.children(recursive=True)] if process.ppid() else [process]
    # The API's children are the engines, which are counted themselves.
    counted = family if "engines.runtime.engine_main" in " ".join(process.cmdline()) else family[:1]
    return sum(int(member.memory_info().rss) for member in counted)


def _count_memfds(pid: int) -> int:
    count = 0
    for name in os.listdir(f"/proc/{pid}/fd"):
        with suppress(OSError):
            count += "memfd:sgl-omni" in os.readlink(f"/proc/{pid}/fd/{name}")
    return count
