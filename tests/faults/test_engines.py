"""Every engine is ended, killed and stopped, at rest and at work.

What was asked of it fails in time and visibly, what was asked of others does not, and the engine
comes back.
"""

import base64
import itertools
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import numpy as np
import psutil
import pytest
from PIL import Image

from sglang_omni.engines.runtime.shm_cleanup import SHM_DIR, find_mapped_inodes, iter_group_pids
from tests.media.files import encoded
from tests.server.running import Call, RunningServer, call, wait_until
from tests.testing.machine import PATIENCE

DEAD_S, HUNG_S, UNREADY_S = 5.0, 15.0, 5.0
# What is claimed is 60 s on two idle cores.
RECOVERY_S = 60.0 * PATIENCE
SIGNALS = [signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP]
LINE = "The mill stands by the river, and the river runs past the mill."
NUMBERS = itertools.count()


@dataclass(frozen=True)
class Victim:
    """A process to hurt, and the route and the kind of request that needs it.

    It is an engine, or a child of it with `part` in its command line. Where it `has_substitute`,
    another process goes on with its work, and the server stays ready.
    """

    engine: str
    needs: str
    part: str = ""
    has_substitute: bool = False

    def process(self, server: RunningServer) -> psutil.Process:
        engine = psutil.Process(server.engine(self.engine)["pid"])
        if not self.part:
            return engine
        family = engine.children(recursive=True)
        return next(one for one in family if self.part in "".join(one.cmdline()))


VICTIMS = [
    Victim("thinker", "text"),
    Victim("thinker", "text", part="scheduler"),
    Victim("thinker", "text", part="detokenizer"),
    Victim("talker", "speech"),
    Victim("encoders", "picture"),
    Victim("media_decoder-0", "picture", has_substitute=True),
]


def picture(side: int = 224) -> str:
    """A picture never seen before: a cached one would need no encoder."""
    noise = np.random.default_rng(next(NUMBERS)).integers(0, 255, (side, side, 3), np.uint8)
    return "data:image/png;base64," + base64.b64encode(encoded(Image.fromarray(noise))).decode()


def ask(kind: str, tokens: int = 400) -> tuple[str, dict[str, Any]]:
    if kind == "speech":
        return "audio/speech", {"model": "ming-omni", "input": " ".join([LINE] * 20), "seed": 1}
    content: list[dict[str, Any]] = [{"type": "text", "text": "Tell me a long story."}]
    if kind == "picture":
        content.append({"type": "image_url", "image_url": {"url": picture()}})
    message = {"role": "user", "content": content}
    return "chat/completions", {"model": "ming-omni", "messages": [message], "max_tokens": tokens}


def streamed(kind: str) -> dict[str, Any]:
    return {"stream_format": "sse"} if kind == "speech" else {"stream": True}


def works(server: RunningServer, kind: str) -> bool:
    route, body = ask(kind, tokens=4)
    short = {"input": "Hello."} if kind == "speech" else {}
    reply = httpx.post(f"{server.api}/{route}", json={**body, **short}, timeout=60)
    return reply.status_code == 200


def load(server: RunningServer, kind: str) -> Iterator[tuple[Call, threading.Thread]]:
    """A stream that has begun where the engine streams, and a whole answer."""
    route, body = ask(kind)
    if kind != "picture":
        stream = call(f"{server.api}/{route}", {**body, **streamed(kind)})
        wait_until(lambda: stream[0].started, 30, "the stream has begun")
        yield stream
    for _ in range(1 if kind != "picture" else 6):
        route, body = ask(kind)
        yield call(f"{server.api}/{route}", body)


def shared_names(inodes: set[int]) -> list[str]:
    return [entry.name for entry in SHM_DIR.iterdir() if entry.stat().st_ino in inodes]


@pytest.mark.parametrize("loaded", [False, True], ids=["idle", "loaded"])
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
@pytest.mark.parametrize(
    "hurt", VICTIMS, ids=lambda one: f"{one.engine}{one.part and '-'}{one.part}"
)
def test_a_fault_is_told_in_time_and_repaired(
    victim: RunningServer, hurt: Victim, number: signal.Signals, loaded: bool
) -> None:
    wait_until(lambda: victim.ready_status() == 200, RECOVERY_S, "ready before")
    before = victim.engine(hurt.engine)
    shared = find_mapped_inodes(before["pid"])
    calls = list(load(victim, hurt.needs)) if loaded else []
    process = hurt.process(victim)

    hurt_at = time.monotonic()
    process.send_signal(number)
    if number is signal.SIGSTOP:
        # What comes after a hang, before anybody knows of it, must not wait for ever either.
        route, body = ask(hurt.needs)
        calls.append(call(f"{victim.api}/{route}", body))

    def is_told() -> bool:
        if hurt.has_substitute:
            assert victim.ready_status() == 200
            state = victim.engine(hurt.engine)
            return state["state"] != "ready" or state["restarts"] > before["restarts"]
        return victim.ready_status() == 503

    unready_s = wait_until(is_told, UNREADY_S, "unready")
    limit_s = HUNG_S if number is signal.SIGSTOP else DEAD_S
    for made, thread in calls:
        thread.join(max(0.1, hurt_at + limit_s + 25 - time.monotonic()))
        assert not thread.is_alive(), "a request is pending"
        assert made.status == 200 or made.failed_visibly, (made.status, made.text[-300:])
        if made.failed_visibly:
            assert made.ended_at - hurt_at < limit_s
    if hurt.needs != "text" and hurt.engine != "talker":
        assert works(victim, "text")
    if loaded and hurt.needs != "picture":
        assert all(made.failed_visibly for made, _ in calls)

    def is_back() -> bool:
        assert not hurt.has_substitute or victim.ready_status() == 200
        state = victim.engine(hurt.engine)
        return state["restarts"] > before["restarts"] and state["state"] == "ready"

    back_s = wait_until(is_back, RECOVERY_S, "the engine is back")
    wait_until(lambda: victim.ready_status() == 200, RECOVERY_S, "ready again")
    print(f"unready after {unready_s:.1f} s, back after {time.monotonic() - hurt_at:.1f} s", back_s)
    after = victim.engine(hurt.engine)
    assert after["pid"] != before["pid"]
    assert after["restarts"] == before["restarts"] + 1
    assert not list(iter_group_pids(before["pid"]))
    assert shared_names(shared) == []
    assert works(victim, hurt.needs)
