"""How `sgl-omni serve` ends: it drains at the first signal and goes at the second."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.entrypoints.cli.slow_server import PAUSE_S, WORDS
from tests.server.running import HTTP, Call, call, free_port, wait_until

ROOT = Path(__file__).parents[3]
CHAT = {"model": "org/ming", "messages": [{"role": "user", "content": "hello"}], "stream": True}
ANSWER_S = WORDS * PAUSE_S
# How it ends is judged by the clock; how it starts is not.
START_S = 60

pytestmark = [pytest.mark.alone, pytest.mark.extended]


@contextmanager
def serving(
    drain_timeout: float, delay: float = 0.0
) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "tests.entrypoints.cli.slow_server",
        str(port),
        f"{drain_timeout},{delay}",
    ]
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=ROOT)
    try:
        wait_until(lambda: answers(f"http://127.0.0.1:{port}", process), START_S, "it serves")
        yield process, f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def answers(url: str, process: subprocess.Popen[bytes] | None = None) -> bool:
    """Whether it serves; fails when its process has ended."""
    assert process is None or process.poll() is None, f"it ended with {process.returncode}"
    try:
        return HTTP.get(f"{url}/ready").status_code == 200
    except httpx.HTTPError:
        return False


def begun(url: str) -> Call:
    made, _ = call(f"{url}/v1/chat/completions", CHAT)
    wait_until(lambda: made.started, 5, "the stream has begun")
    return made


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_streams_end_by_themselves_and_the_server_exits_with_0(number: signal.Signals) -> None:
    with serving(drain_timeout=20) as (process, url):
        stream = begun(url)
        process.send_signal(number)
        wait_until(lambda: not answers(url), 2, "draining")
        refused = httpx.post(f"{url}/v1/chat/completions", json=CHAT)
        assert (refused.status_code, refused.headers["connection"]) == (503, "close")
        assert process.wait(ANSWER_S + 5) == 0
        assert stream.text.endswith("data: [DONE]\n\n")


def test_proxies_have_time_to_notice_a_shutdown() -> None:
    with serving(drain_timeout=20, delay=2.0) as (process, url):
        process.send_signal(signal.SIGTERM)
        signalled_at = time.monotonic()
        wait_until(lambda: not answers(url), 1, "not ready")
        accepted = begun(url)
        assert time.monotonic() - signalled_at < 2
        wait_until(
            lambda: httpx.post(f"{url}/v1/chat/completions", json=CHAT).status_code == 503,
            4,
            "over",
        )
        assert time.monotonic() - signalled_at >= 2
        assert process.wait(ANSWER_S + 5) == 0
        assert accepted.text.endswith("data: [DONE]\n\n")


def test_a_second_signal_ends_the_delay() -> None:
    with serving(drain_timeout=20, delay=30.0) as (process, url):
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: not answers(url), 1, "not ready")
        process.send_signal(signal.SIGTERM)
        assert process.wait(5) == 0


def test_an_idle_server_exits_at_once() -> None:
    with serving(drain_timeout=20) as (process, _):
        process.send_signal(signal.SIGTERM)
        assert process.wait(3) == 0


def test_what_takes_longer_than_the_time_out_ends_with_an_error_event() -> None:
    with serving(drain_timeout=0.4) as (process, url):
        stream = begun(url)
        process.send_signal(signal.SIGTERM)
        assert process.wait(5) == 0
        last = stream.text.strip().splitlines()[-1].removeprefix("data: ")
        assert json.loads(last)["error"]["code"] == "engine_unavailable"


def test_a_second_signal_exits_now() -> None:
    with serving(drain_timeout=20) as (process, url):
        stream = begun(url)
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: not answers(url), 2, "draining")
        insisted_at = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(3) == 0
        assert time.monotonic() - insisted_at < ANSWER_S
        assert "[DONE]" not in stream.text


def test_a_web_server_that_cannot_serve_is_no_success() -> None:
    command = [
        sys.executable,
        "-m",
        "tests.entrypoints.cli.slow_server",
        str(free_port()),
        "1",
        "broken",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, timeout=START_S)
    assert done.returncode != 0
    assert b"SSL" in done.stderr
