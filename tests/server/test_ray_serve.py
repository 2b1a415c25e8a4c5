"""Two default servers on a Ray cluster of one node, with the files of `deploy/ray_serve`."""

import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import psutil
import pytest

from tests.server.proxied_routes import (
    check_chat,
    check_page,
    check_private,
    check_realtime,
    check_speech,
    check_speech_stream,
    check_spoken_chat,
    check_transcription,
)
from tests.server.replica_proxies import run_ray_serve
from tests.server.running import START_DEADLINE_S, wait_until

pytestmark = [pytest.mark.extended, pytest.mark.timeout(1200)]

CHECKS = [
    check_chat,
    check_spoken_chat,
    check_speech,
    check_transcription,
    check_realtime,
    check_speech_stream,
    check_page,
    check_private,
]
NUM_SERVERS = 2


@pytest.fixture(scope="module")
def ray_serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with run_ray_serve(tmp_path_factory.mktemp("ray"), options="") as url:
        yield url
        servers = find_servers()
    _, alive = psutil.wait_procs(servers, timeout=60)
    assert alive == []


def find_servers() -> list[psutil.Process]:
    """Return the servers that Ray's replicas have started for this test."""
    family = psutil.Process().children(recursive=True)
    return [one for one in family if is_server(one)]


def is_server(process: psutil.Process) -> bool:
    try:
        return "sglang_omni serve" in " ".join(process.cmdline())
    except psutil.Error:
        return False


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_ray_serve_passes(ray_serve: str, check: Callable[[str], None]) -> None:
    check(ray_serve)


def get_server_pid(url: str, session: str) -> Any:
    """Return the process that answers callers with this session."""
    headers = {"x-session-id": session}
    health = httpx.get(f"{url}/health", headers=headers).json()
    return health["engines"]["thinker"]["pid"]


def test_a_session_stays_with_its_server(ray_serve: str) -> None:
    known = {
        session: {get_server_pid(ray_serve, session) for _ in range(4)}
        for session in map(str, range(12))
    }
    assert all(len(pids) == 1 for pids in known.values())
    assert len(set.union(*known.values())) == NUM_SERVERS


def test_a_server_that_ends_is_replaced(ray_serve: str) -> None:
    before = find_servers()
    assert len(before) == NUM_SERVERS
    os.kill(before[0].pid, signal.SIGKILL)
    wait_until(
        lambda: len(set(find_servers()) - set(before)) == 1, START_DEADLINE_S, "a new server"
    )
    wait_until(
        lambda: len({get_server_pid(ray_serve, str(number)) for number in range(12)}) == 2,
        START_DEADLINE_S,
        "both servers answer",
    )
