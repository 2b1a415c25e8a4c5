"""An engine that dies fails its own requests at once, is said to be down, and comes back."""

import signal
import time
from collections.abc import Callable
from typing import Any

import httpx
import psutil
import pytest

from tests.server.running import RunningServer, call, wait_until

FAILS_WITHIN_S = 5.0
COMES_BACK_WITHIN_S = 150.0
LONG_TEXT = " ".join(["The mill stands by the river, and the river runs past the mill."] * 30)

CHAT = {
    "model": "ming-omni",
    "messages": [{"role": "user", "content": "Tell me a long story."}],
    "temperature": 0,
    "max_tokens": 2000,
}
SPEECH = {"model": "ming-omni", "voice": "DB30", "input": LONG_TEXT, "seed": 5}


def kill_talker(server: RunningServer) -> None:
    psutil.Process(server.engine("talker")["pid"]).send_signal(signal.SIGKILL)


def kill_scheduler(server: RunningServer) -> None:
    family = psutil.Process(server.engine("thinker")["pid"]).children(recursive=True)
    schedulers = [process for process in family if "scheduler" in "".join(process.cmdline())]
    assert schedulers, [process.cmdline() for process in family]
    schedulers[0].send_signal(signal.SIGKILL)


@pytest.mark.parametrize(
    ("engine", "kill", "route", "whole", "streamed"),
    [
        ("talker", kill_talker, "audio/speech", SPEECH, {"stream_format": "sse"}),
        pytest.param(
            "thinker",
            kill_scheduler,
            "chat/completions",
            CHAT,
            {"stream": True},
            marks=pytest.mark.extended,
        ),
    ],
)
def test_a_killed_engine_fails_fast_and_comes_back(
    server: RunningServer,
    engine: str,
    kill: Callable[[RunningServer], None],
    route: str,
    whole: dict[str, Any],
    streamed: dict[str, Any],
) -> None:
    wait_until(lambda: server.ready_status() == 200, COMES_BACK_WITHIN_S, "ready before")
    restarts = server.engine(engine)["restarts"]
    url = f"{server.api}/{route}"
    stream, stream_thread = call(url, {**whole, **streamed})
    single, single_thread = call(url, whole)
    wait_until(lambda: stream.started, 30, "the stream has begun")

    killed_at = time.monotonic()
    kill(server)
    for thread in (stream_thread, single_thread):
        thread.join(FAILS_WITHIN_S + 1)

    assert single.failed_visibly
    assert stream.status == 200
    assert stream.failed_visibly
    assert max(stream.ended_at, single.ended_at) - killed_at < FAILS_WITHIN_S
    assert server.ready_status() == 503
    assert server.engine(engine)["state"] == "restarting"
    wait_until(lambda: server.ready_status() == 200, COMES_BACK_WITHIN_S, f"{engine} is back")
    assert server.engine(engine)["restarts"] == restarts + 1
    assert works(server, route)


def works(server: RunningServer, route: str) -> bool:
    small = {"input": "Hello."} if route == "audio/speech" else {"max_tokens": 4}
    body = {**(SPEECH if route == "audio/speech" else CHAT), **small}
    return httpx.post(f"{server.api}/{route}", json=body, timeout=60).status_code == 200


def test_text_chat_goes_on_while_the_talker_restarts(server: RunningServer) -> None:
    wait_until(lambda: server.ready_status() == 200, COMES_BACK_WITHIN_S, "ready before")
    kill_talker(server)
    wait_until(lambda: server.ready_status() == 503, 5, "the talker is down")
    assert works(server, "chat/completions")
    refused = httpx.post(f"{server.api}/audio/speech", json=SPEECH, timeout=60)
    assert refused.status_code == 503
    assert refused.json()["error"]["code"] == "engine_unavailable"
    wait_until(lambda: server.ready_status() == 200, COMES_BACK_WITHIN_S, "the talker is back")


def test_a_hung_engine_is_unready_first_and_then_taken_for_dead(server: RunningServer) -> None:
    wait_until(lambda: server.ready_status() == 200, COMES_BACK_WITHIN_S, "ready before")
    stream, thread = call(f"{server.api}/audio/speech", {**SPEECH, "stream_format": "sse"})
    wait_until(lambda: stream.started, 30, "the stream has begun")
    hung_at = time.monotonic()
    psutil.Process(server.engine("talker")["pid"]).send_signal(signal.SIGSTOP)
    wait_until(lambda: server.ready_status() == 503, 5, "unready")
    thread.join(16)
    assert stream.failed_visibly
    assert stream.ended_at - hung_at < 15
    wait_until(lambda: server.ready_status() == 200, COMES_BACK_WITHIN_S, "the talker is back")
