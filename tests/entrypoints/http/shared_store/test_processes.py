"""`sgl-omni serve` without engines, in processes that share a Redis."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.entrypoints.http.shared_store.redis_server import RedisServer
from tests.server.running import free_port, wait_until

ROOT = Path(__file__).parents[4]
START_S = 60
KEY = "one-key-for-all-servers"
LOADING = "engines would load now"


def open_process(log: Path, port: int, **options: str) -> subprocess.Popen[bytes]:
    """Start a server; what it prints is in a file."""
    given = [f"{name}={value}" for name, value in options.items()]
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    with log.open("w") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.entrypoints.cli.quick_server", f"port={port}", *given],
            env={**os.environ, "PYTHONPATH": paths, "KEYS": KEY},
            stdout=output,
            stderr=subprocess.STDOUT,
        )


@contextmanager
def serving_process(
    log: Path, **options: str
) -> Iterator[tuple[httpx.Client, subprocess.Popen[bytes]]]:
    """Yield a client of a server that is ready, and its process."""
    port = free_port()
    process = open_process(log, port, **options)
    headers = {"Authorization": f"Bearer {KEY}"}
    url = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        assert process.poll() is None, log.read_text()
        try:
            return httpx.get(f"{url}/ready").status_code == 200
        except httpx.HTTPError:
            return False

    try:
        wait_until(answers, START_S, "the server answers")
        with httpx.Client(base_url=url, headers=headers, timeout=30) as client:
            yield client, process
    finally:
        process.kill()
        process.wait()


def test_processes_share_what_a_key_has_stored(own_redis: RedisServer, tmp_path: Path) -> None:
    options = {"api_key": "env:KEYS", "shared_store.url": own_redis.url}
    with (
        serving_process(tmp_path / "first", **options) as (first, first_process),
        serving_process(tmp_path / "second", **options) as (second, second_process),
    ):
        response_id = first.post("/v1/responses", json={"input": "one"}).json()["id"]
        follow = {"input": "two", "previous_response_id": response_id}
        assert second.post("/v1/responses", json=follow).status_code == 200
        # A server that ends takes nothing with it.
        first_process.send_signal(signal.SIGTERM)
        assert first_process.wait(30) == 0
        assert second.get(f"/v1/responses/{response_id}").status_code == 200
        own_redis.kill()
        assert second.get(f"/v1/responses/{response_id}").status_code == 503
        assert second.get("/ready").json()["shared_store"]["state"] == "unavailable"
        second_process.send_signal(signal.SIGTERM)
        assert second_process.wait(30) == 0
    printed = (tmp_path / "second").read_text()
    assert printed.count("the shared store does not answer") == 1
    assert "Traceback" not in printed + (tmp_path / "first").read_text()


def test_a_server_without_its_redis_ends_before_it_loads(
    own_redis: RedisServer, tmp_path: Path
) -> None:
    own_redis.kill()
    process = open_process(tmp_path / "log", free_port(), **{"shared_store.url": own_redis.url})
    assert process.wait(START_S) == 1
    printed = (tmp_path / "log").read_text()
    assert f"shared_store.url: no Redis answers at 127.0.0.1:{own_redis.port}" in printed
    assert "Traceback" not in printed
