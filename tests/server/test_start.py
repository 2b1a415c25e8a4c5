"""What a user sees of a start with default settings, and what is kept for whoever needs more."""

import re
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest
import soundfile

from sglang_omni.config.load import load_config
from sglang_omni.entrypoints.cli.startup_banner import describe_hardware
from tests.server.running import HTTP, RunningServer

MOST_LINES, MOST_CHARACTERS = 12, 200
# On a machine that others keep busy, a start of more than half a minute says what it is at.
WAITING = "starting for "
# Engines are polled for the line of times, and measure their phases themselves.
SLACK_S = 2.0


@pytest.fixture
def screen(default_server: RunningServer) -> list[str]:
    """The lines up to the last of the start."""
    lines = default_server.printed.splitlines()
    return lines[: lines.index("Stop    Ctrl-C") + 1]


def line(screen: list[str], name: str) -> str:
    """What one of the named lines says."""
    [found] = [one for one in screen if one.startswith(f"{name:8}")]
    return found[8:]


def test_a_start_is_a_dozen_lines_that_mean_something(screen: list[str]) -> None:
    lines = [one for one in screen if not one.startswith(WAITING)]
    assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= MOST_CHARACTERS
    model = "Ming-mini (bundled demo)"
    assert (
        lines[0] == f"sglang-omni {version('sglang_omni')} · {model} · {describe_hardware('auto')}"
    )
    kinds = re.findall(r"✓ (\w+) \d+\.\d s", lines[1])
    assert sorted(kinds) == ["decoders", "encoders", "grammar", "talker", "thinker"]
    names = [one[:8].strip() for one in lines[2:]]
    assert names == ["Start", "Open", "Try", "Hear", "API", "Limits", "Logs", "Stop"]


def test_it_says_where_and_what_may_be_asked(
    screen: list[str], default_server: RunningServer
) -> None:
    assert line(screen, "Open") == f"{default_server.url}/"
    assert line(screen, "Try") == '"What is 17 + 25?"'
    assert line(screen, "API").startswith(f"{default_server.api} ")
    limits = r"\d+ chats · \d+ voices · no API key \(this machine only\)"
    assert re.fullmatch(limits, line(screen, "Limits"))


def test_the_phases_of_the_longest_start_are_told_and_add_up(
    screen: list[str], default_server: RunningServer
) -> None:
    engines = HTTP.get(f"{default_server.url}/health").json()["engines"]
    name, _, shown = line(screen, "Start").partition(": ")
    phases = engines[name]["start_phases"]
    assert shown == " · ".join(f"{one['name']} {one['seconds']:.1f} s" for one in phases)
    names = [one["name"] for one in phases]
    assert names == {
        "thinker": [
            "starting the process",
            "starting SGLang",
            "reading the thinker's weights",
            "allocating the KV cache",
            "warming up the thinker",
        ]
    }.get(name, names)
    total = sum(one["seconds"] for one in phases)
    kinds = dict(re.findall(r"✓ (\w+) (\d+\.\d) s", screen[-9]))
    assert abs(total - float(kinds[name])) < SLACK_S
    # Every engine has them, but one that is not needed yet.
    started = [engine for engine in engines.values() if engine["state"] != "standby"]
    assert all(engine["start_phases"] for engine in started)


def test_the_command_it_gives_writes_speech(screen: list[str], tmp_path: Path) -> None:
    subprocess.run(["bash", "-c", line(screen, "Hear")], cwd=tmp_path, check=True, timeout=60)
    assert soundfile.info(tmp_path / "hello.wav").duration > 0.5


def test_the_log_folder_has_the_configuration_and_what_engines_print(screen: list[str]) -> None:
    folder = Path(line(screen, "Logs"))
    used = load_config(folder / "config.yaml", {})
    assert used.log_folder == folder
    assert used.model_path is None
    assert "server_args=ServerArgs(" in (folder / "thinker.log").read_text()
    assert "skipped 67 tensors of audio" in (folder / "thinker.log").read_text()
    assert "loaded 134 tensors; unused" in (folder / "talker.log").read_text()
