"""What a start prints, for servers other than the default one."""

import io
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from sglang_omni.config.load import load_config
from sglang_omni.config.tree import Config
from sglang_omni.engines.runtime.gpus import Gpu
from sglang_omni.engines.runtime.start_phases import StartPhase
from sglang_omni.engines.speech.contract import TalkerInfo
from sglang_omni.engines.thinker.contract import ThinkerInfo
from sglang_omni.entrypoints.cli import start_progress as progress
from sglang_omni.entrypoints.cli import startup_banner as screen
from sglang_omni.entrypoints.cli.start_progress import StartProgress, get_engine_kind
from sglang_omni.entrypoints.cli.startup_banner import (
    format_header,
    format_startup_banner,
    get_public_url,
    print_text,
)
from tests.testing.golden import TINY


def engine(state: str = "ready", info: Any = None, doing: str = "") -> Any:
    health = SimpleNamespace(state=state, info=info, progress=doing, start_phases=())
    return SimpleNamespace(health=health)


def config(**values: Any) -> Config:
    return load_config(None, values)


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("127.0.0.1", "http://127.0.0.1:80"),
        ("0.0.0.0", "http://127.0.0.1:80"),
        ("::", "http://[::1]:80"),
        ("10.0.0.2", "http://10.0.0.2:80"),
    ],
)
def test_the_address_can_be_opened_on_this_machine(host: str, shown: str) -> None:
    assert get_public_url(config(), host, 80) == shown


def test_tls_is_in_the_address() -> None:
    assert get_public_url(config(tls_certificate="a.crt"), "::1", 80) == "https://[::1]:80"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "no API key (this machine only)"),
        ({"host": "0.0.0.0"}, "no API key (anyone who reaches 0.0.0.0)"),
        ({"host": "0.0.0.0", "api_key": "env:KEYS"}, "API key required"),
    ],
)
def test_who_may_ask_is_said(values: dict[str, str], said: str) -> None:
    text = format_startup_banner(config(**values), "http://h:1", {}, ())
    assert f"Limits  {said}\n" in text
    assert ("Bearer KEY" in text) == ("api_key" in values)


def test_replicas_count_together_and_a_missing_prompt_leaves_no_line() -> None:
    talker = TalkerInfo(44100, 0.32, ("v",), slots=8)
    processes = {"thinker": engine(info=ThinkerInfo(1, 1, 16))}
    processes |= {"talker": engine(info=talker), "talker-1": engine(info=talker)}
    text = format_startup_banner(config(), "http://h:1", processes, ())
    assert "16 chats · 16 voices" in text
    assert "Try" not in text


def test_gpus_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = tuple(Gpu(index, "NVIDIA H200", 1, 1) for index in range(2))
    monkeypatch.setattr(screen, "list_visible_gpus", lambda: found)
    assert format_header(TINY, "cuda").endswith(f" · {TINY.name} · 2 x NVIDIA H200")


def test_a_terminal_without_the_characters_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    terminal = io.TextIOWrapper(written, encoding="ascii")
    monkeypatch.setattr(sys, "stdout", terminal)
    print_text("✓ ready")
    assert written.getvalue() == b"? ready\n"


def test_processes_of_a_kind_are_one_entry_of_the_summary() -> None:
    names = ("media_decoder-0", "media_decoder-1", "image_encoder", "talker-1", "thinker")
    assert [get_engine_kind(name) for name in names] == [
        "decoders",
        "decoders",
        "image encoder",
        "talker",
        "thinker",
    ]
    board = StartProgress({"media_decoder-0": engine(), "media_decoder-1": engine()}, io.StringIO())
    assert board.describe_longest() == ""
    board.draw()
    assert board.summary() == "✓ decoders 0.0 s"


def test_the_phases_of_the_engine_that_was_last_are_told() -> None:
    phases = (StartPhase("starting the process", 1.25), StartPhase("warming up", 0.5))
    first, last = engine(), engine("starting")
    board = StartProgress({"talker": first, "audio_encoder": last}, io.StringIO())
    board.draw()
    last.health.state, last.health.start_phases = "ready", phases
    board.draw()
    told = board.describe_longest()
    assert told == "audio encoder: starting the process 1.2 s · warming up 0.5 s"
    assert f"Start   {told}\n" in format_startup_banner(config(), "http://h:1", {}, (), told)


def test_a_long_start_says_what_it_is_at(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    processes = {"talker": engine(), "thinker": engine("starting", doing="loading weights 3/12")}
    # It is not part of the start.
    processes["talker-1"] = engine("standby")
    board = StartProgress(processes, io.StringIO())
    board.draw()
    board.report()
    assert capsys.readouterr().out == ""
    monkeypatch.setattr(progress, "REPORT_S", 0.0)
    board.report()
    assert capsys.readouterr().out == "starting for 0 s: thinker: loading weights 3/12\n"
