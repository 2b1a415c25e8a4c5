"""An engine behind a host and a proxy's relay, without Ray: the same messages, memory and end."""

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sglang_omni.engines.encoder.contract import AudioEncodeRequest
from sglang_omni.engines.remote.contract import TlsFiles
from sglang_omni.engines.remote.host import Launch, serve_engine
from sglang_omni.engines.remote.links import HostListener, Links
from sglang_omni.engines.remote.messages import Ended, Hello
from sglang_omni.engines.remote.proxy_main import ProxyRelay
from sglang_omni.engines.runtime.shared_array import SharedArray
from sglang_omni.engines.runtime.transport import (
    MAX_FRAME_BYTES,
    Cancel,
    Failed,
    Heartbeat,
    Outputs,
    Ready,
    Start,
    Stop,
    Submit,
    receive,
)
from sglang_omni.protocol.errors import StartupError
from sglang_omni.version import package_version
from tests.engines.remote.array_worker import Doubled
from tests.engines.runtime.processes import ROOT, alive
from tests.engines.runtime.toy_workers import Count, ToySettings

TOYS = "tests.engines.runtime.toy_workers"


@dataclass
class Remote:
    """An engine behind its host and relay. The test is the server."""

    relay: ProxyRelay
    links: Links
    messages: Iterator[Any]
    ended: list[Ended] = field(default_factory=list)
    host_said: list[str] = field(default_factory=list)

    def expect(self, kind: type, *, within: int = 400) -> Any:
        """Return the next message of a kind, and drop those before it."""
        for _, message in zip(range(within), self.messages, strict=False):
            if isinstance(message, kind):
                return message
        raise AssertionError(f"no {kind.__name__}")

    def outputs(self, request_id: str) -> list[Any]:
        """Return the outputs of a request up to its last."""
        found: list[Any] = []
        while not found or not found[-1].last:
            pairs = self.expect(Outputs).outputs
            found += [output for owner, output in pairs if owner == request_id]
        return found


@contextmanager
def remote(
    machines: dict[str, TlsFiles],
    factory: str = f"{TOYS}:make_step",
    settings: Any = ToySettings(),  # noqa: B008
) -> Iterator[Remote]:
    listener = HostListener("127.0.0.1", machines["a"])
    env = {"PYTHONPATH": str(ROOT)}
    launch = Launch("toy", env, listener.address, listener.tokens, machines["b"])
    ours, theirs = socket.socketpair()
    running = Remote.__new__(Remote)
    running.ended, running.host_said = [], []
    host = threading.Thread(target=lambda: running.host_said.append(serve_engine(launch)))
    host.start()
    links = listener.wait(10)
    assert links is not None
    assert next(links.receive()) == Hello(package_version())
    running.relay, running.links = ProxyRelay(theirs, links), links
    running.messages = receive(ours)
    down = threading.Thread(target=lambda: running.ended.append(running.relay.forward_down()))
    down.start()
    running.relay.send(Start(factory, settings, 32))
    try:
        yield running
    finally:
        links.close()
        host.join(10)
        down.join(10)
        assert not host.is_alive()
        ours.close()
        theirs.close()


def wait_for(condition: Callable[[], bool], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("kind", ["step", "stream"])
def test_requests_are_answered(machines: dict[str, TlsFiles], kind: str) -> None:
    with remote(machines, f"{TOYS}:make_{kind}") as engine:
        engine.expect(Ready)
        engine.relay.send(Submit("a", Count(20)))
        assert [output.value for output in engine.outputs("a")] == list(range(20))
        engine.relay.send(Submit("b", Count(5, fault="refuse")))
        assert engine.expect(Failed).request_id == "b"


def test_a_cancelled_request_leaves_the_engine(machines: dict[str, TlsFiles]) -> None:
    with remote(machines) as engine:
        engine.expect(Ready)
        engine.relay.send(Submit("a", Count(10**9)))
        engine.expect(Outputs)
        engine.relay.send(Cancel("a"))
        while engine.expect(Heartbeat).counters.get("cancelled") != 1:
            pass


def test_memory_goes_there_and_back(machines: dict[str, TlsFiles]) -> None:
    factory = "tests.engines.remote.array_worker:make_doubler"
    with remote(machines, factory, None) as engine:
        engine.expect(Ready)
        samples = np.random.default_rng(1).random(2_000_000, np.float32)
        source, rows = SharedArray(), SharedArray()
        request = AudioEncodeRequest(source, source.write(samples), rows)
        engine.relay.send(Submit("a", request))
        (output,) = engine.outputs("a")
        assert isinstance(output, Doubled)
        assert np.array_equal(rows.read(output.layout), 2 * samples)


def test_memory_may_exceed_the_size_of_a_message(machines: dict[str, TlsFiles]) -> None:
    factory = "tests.engines.remote.array_worker:make_doubler"
    with remote(machines, factory, None) as engine:
        engine.expect(Ready)
        source, rows = SharedArray(), SharedArray()
        layout = source.write(np.ones(4, np.float32))
        with source.open() as file:
            file.truncate(MAX_FRAME_BYTES + 1)
        engine.relay.send(Submit("a", AudioEncodeRequest(source, layout, rows)))
        (output,) = engine.outputs("a")
        assert np.array_equal(rows.read(output.layout), np.full(4, 2))


def test_what_the_engine_prints_is_printed(
    machines: dict[str, TlsFiles], capfd: pytest.CaptureFixture[str]
) -> None:
    with remote(machines) as engine:
        engine.expect(Ready)
        engine.relay.send(Stop())
        wait_for(lambda: bool(engine.ended and engine.host_said))
        assert engine.ended == [Ended(0, "exited with 0")]
        assert engine.host_said == ["exited with 0"]
    assert "closed\n" in capfd.readouterr().out


def test_the_status_of_an_engine_that_exits_is_told(machines: dict[str, TlsFiles]) -> None:
    with remote(machines) as engine:
        engine.expect(Ready)
        engine.relay.send(Submit("a", Count(5, fault="exit")))
        wait_for(lambda: bool(engine.ended))
        assert engine.ended == [Ended(5, "exited with 5")]


def test_the_signal_that_ends_an_engine_is_told(machines: dict[str, TlsFiles]) -> None:
    with remote(machines) as engine:
        os.kill(engine.expect(Ready).info.pid, signal.SIGKILL)
        wait_for(lambda: bool(engine.ended))
        assert engine.ended == [Ended(-9, "was killed by SIGKILL")]


def test_the_gpus_that_a_machine_gives_are_kept(
    machines: dict[str, TlsFiles], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    with remote(machines) as engine:
        pid = engine.expect(Ready).info.pid
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        assert b"CUDA_VISIBLE_DEVICES=3" in variables


def test_an_engine_does_not_outlive_its_link(machines: dict[str, TlsFiles]) -> None:
    settings = ToySettings(grandchild=True)
    with remote(machines, settings=settings) as engine:
        info = engine.expect(Ready).info
        engine.links.close()
        wait_for(lambda: bool(engine.host_said))
        assert "lost its server" in engine.host_said[0]
        wait_for(lambda: not alive(info.pid) and not alive(info.grandchild))


def test_a_server_that_cannot_be_reached_is_named(
    machines: dict[str, TlsFiles], tmp_path: Path
) -> None:
    listener = HostListener("127.0.0.1", machines["a"])
    listener.close()
    launch = Launch("toy", {}, listener.address, listener.tokens, machines["b"])
    with pytest.raises(StartupError, match=r"cannot connect to the server at 127\.0\.0\.1"):
        serve_engine(launch)
