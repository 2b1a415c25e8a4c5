"""What ends with a stream, with an object and with an error."""

import asyncio
import gc
import os
import signal
import threading
import time
from collections.abc import AsyncGenerator
from pathlib import Path

import numpy as np
import pytest

from sglang_omni import AsyncOmni, Omni
from sglang_omni.config.load import load_config
from sglang_omni.config.option_list import Option, OptionSection, list_options, list_sections
from sglang_omni.entrypoints.python.open_server import read_options
from sglang_omni.pipeline.request import AudioDelta, ChatRequest, Event, TextDelta
from sglang_omni.protocol.errors import ConfigError, EngineUnavailable, StartupError
from tests.entrypoints.http.fake import hanging, tone
from tests.entrypoints.python.conftest import FakeServer

NODES: list[Option | OptionSection] = [*list_sections(), *list_options()]
SERVE_ONLY = [node.path for node in NODES if node.is_serve_only]


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "sglang-omni"]


def test_a_stream_that_is_left_is_aborted(omni: Omni, fake: FakeServer) -> None:
    fake.script = hanging(TextDelta("a"), TextDelta("b"), TextDelta("c"))
    for _ in omni.chat("a", stream=True):
        assert fake.running == 1
        break
    fake.wait_running(0)


def test_a_stream_that_is_closed_is_aborted(omni: Omni, fake: FakeServer) -> None:
    fake.script = hanging(AudioDelta(tone()))
    speech = omni.speak("a")
    assert not fake.requests
    next(speech)
    speech.close()
    assert fake.running == 0
    assert list(speech) == []
    speech.close()


def test_a_stream_that_was_never_read_starts_nothing(omni: Omni, fake: FakeServer) -> None:
    omni.speak("a").close()
    del omni
    assert not fake.requests


def test_a_slow_reader_holds_the_request(omni: Omni, fake: FakeServer) -> None:
    produced = []

    async def count(request: ChatRequest) -> AsyncGenerator[Event, None]:
        for index in range(100):
            produced.append(index)
            yield TextDelta("a")

    fake.script = count
    pieces = omni.chat("a", stream=True)
    next(pieces)
    time.sleep(0.05)
    assert len(produced) <= 4


def test_closing_twice_stops_once(fake: FakeServer) -> None:
    omni = Omni()
    assert threads()
    omni.close()
    omni.close()
    assert (fake.started, fake.stopped) == (1, 1)
    assert not threads()
    for call in (lambda: omni.chat("a"), lambda: omni.speak("a"), lambda: omni.transcribe(b"a")):
        with pytest.raises(EngineUnavailable, match="closed"):
            call()


def test_closing_fails_what_still_runs(fake: FakeServer) -> None:
    fake.script = hanging(TextDelta("a"))
    omni, failures = Omni(), []

    def chat() -> None:
        try:
            omni.chat("a")
        except EngineUnavailable as error:
            failures.append(error)

    waiting = threading.Thread(target=chat)
    waiting.start()
    fake.wait_running(1)
    omni.close()
    waiting.join(5)
    assert len(failures) == 1
    assert fake.running == 0


def test_a_start_that_fails_leaves_nothing(fake: FakeServer) -> None:
    fake.start_error = StartupError("no card")
    with pytest.raises(StartupError, match="no card"):
        Omni()
    assert not threads()


def test_an_object_that_is_dropped_ends_its_thread(fake: FakeServer) -> None:
    speech = Omni().speak("two words")
    # The stream keeps the engines.
    assert speech.read().size
    assert threads()
    del speech
    gc.collect()
    deadline = time.monotonic() + 5
    while threads():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_an_interrupt_aborts_the_call(omni: Omni, fake: FakeServer) -> None:
    fake.script = hanging()
    # Interrupts this thread, which waits.
    timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        omni.chat("a")
    fake.wait_running(0)
    fake.reset()
    assert omni.chat("still here").text == "still here "


def test_an_interrupt_ends_a_start(fake: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = []

    async def start() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    monkeypatch.setattr(fake, "start", start)
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        Omni()
    assert ended
    assert not threads()


def test_threads_share_an_object(omni: Omni) -> None:
    texts: list[str] = []
    callers = [
        threading.Thread(target=lambda n=n: texts.append(omni.chat(f"word {n}").text))
        for n in range(8)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(10)
    assert sorted(texts) == [f"word {n} " for n in range(8)]


async def test_the_asynchronous_twin_does_the_same(fake: FakeServer) -> None:
    async with AsyncOmni() as omni:
        assert (await omni.chat("two words")).text == "two words "
        stream = await omni.chat("two words", stream=True)
        assert [piece.text async for piece in stream if isinstance(piece, TextDelta)] == [
            "two ",
            "words ",
        ]
        assert (await omni.speak("a b").read()).size == 2 * tone().size
        chunks = [chunk async for chunk in omni.speak("a b")]
        assert len(chunks) == 2
        assert await omni.transcribe(b"a")
    await omni.close()
    assert (fake.started, fake.stopped) == (1, 1)
    with pytest.raises(EngineUnavailable):
        await omni.chat("a")


async def test_it_works_in_a_running_loop(fake: FakeServer) -> None:
    """As in a notebook, whose cells run in a loop."""
    with Omni() as omni:
        assert omni.chat("a").text == "a "


async def test_an_asynchronous_stream_that_is_left_is_aborted(fake: FakeServer) -> None:
    fake.script = hanging(AudioDelta(tone()))
    async with AsyncOmni() as omni:
        async for chunk in omni.speak("a"):
            assert isinstance(chunk, np.ndarray)
            break
        await asyncio.sleep(0.05)
        assert fake.running == 0


async def test_a_cancelled_chat_is_aborted(fake: FakeServer) -> None:
    fake.script = hanging()
    async with AsyncOmni() as omni:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(omni.chat("a"), 0.1)
        assert fake.running == 0


async def test_closing_wakes_an_asynchronous_reader(fake: FakeServer) -> None:
    fake.script = hanging()
    omni = AsyncOmni()
    await omni.start()
    reader = asyncio.create_task(omni.chat("a"))
    await asyncio.sleep(0.05)
    await asyncio.gather(omni.close(), omni.close())
    with pytest.raises(EngineUnavailable, match="closed"):
        await reader
    assert fake.stopped == 1


def test_options_are_those_of_the_configuration() -> None:
    config = read_options(
        Path("/models/a"),
        {"device": "cpu", "text_only": True, "thinker": {"tp_size": 2, "gpus": (0, 1)}},
    )
    assert (config.model_path, config.device, config.text_only) == (Path("/models/a"), "cpu", True)
    assert (config.thinker.tp_size, config.thinker.gpus) == (2, (0, 1))


@pytest.mark.parametrize("name", [*SERVE_ONLY, "no_such", "thinker.no_such", "http.no_such"])
def test_other_options_are_refused_by_name(name: str) -> None:
    with pytest.raises(ConfigError) as refused:
        Omni(**{name: 1})  # type: ignore[arg-type]
    assert refused.value.param == name
    assert not threads()


def test_an_option_of_http_is_refused_whatever_its_value() -> None:
    for path in SERVE_ONLY:
        with pytest.raises(ConfigError, match=f"^{path} is an option of `sgl-omni serve` only"):
            read_options(None, {path: None})
    with pytest.raises(ConfigError, match=r"^http is an option of `sgl-omni serve` only"):
        read_options(None, {"http": {"max_url_bytes": 300}})


def test_the_options_of_http_are_those_of_the_server_that_python_does_not_have() -> None:
    sections = {path.partition(".")[0] for path in SERVE_ONLY}
    assert sections == {
        "host",
        "port",
        "max_body_bytes",
        "drain_timeout",
        "shutdown_delay",
        "unread_bytes",
        "unread_timeout",
        "api_key",
        "admin_api_key",
        "cors_origin",
        "allowed_host",
        "tls_certificate",
        "tls_key",
        "tls_client_ca",
        "log_level",
        "log_format",
        "audit_log",
        "otlp_endpoint",
        "profile_folder",
        "strict_fields",
        "http",
        "shared_store",
        "rate_limit",
        "realtime",
    }
    others = {one.path: one.default for one in list_options() if not one.is_serve_only}
    assert read_options(None, others) == load_config(None, {})


def test_a_missing_checkpoint_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="not a checkpoint folder"):
        Omni(tmp_path)
