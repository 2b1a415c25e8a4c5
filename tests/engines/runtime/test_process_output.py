"""Invariants of what engines print: nothing is lost, and only what matters is shown."""

import logging
from pathlib import Path
from typing import Any

import pytest

from sglang_omni.engines.runtime import process_output as output
from sglang_omni.engines.runtime.log_records import EngineRecord, RecordFormatter, parse_record
from sglang_omni.engines.runtime.process import EngineProcess
from sglang_omni.engines.runtime.process_output import EngineOutput, OutputRules
from sglang_omni.protocol.errors import EngineFailed, StartupError
from tests.engines.runtime.processes import eventually, running, toy_spec
from tests.engines.runtime.toy_workers import Count, ToySettings

CapturedFiles = pytest.CaptureFixture[str]


async def collect(engine: EngineProcess, request: Count) -> list[int]:
    return [number.value async for number in engine.submit(request)]


def kept(folder: Path) -> str:
    return (folder / "toy.log").read_text(encoding="utf-8")


async def test_what_an_engine_prints_is_kept_and_its_errors_are_logged(
    tmp_path: Path, capfd: CapturedFiles, caplog: pytest.LogCaptureFixture
) -> None:
    async with running("stream", output=OutputRules(tmp_path)) as engine:
        with pytest.raises(EngineFailed, match="a foreign error"):
            await collect(engine, Count(1, fault="error"))
        engine.profile("nowhere")
        await eventually(lambda: "profiling to nowhere" in kept(tmp_path), within_s=5)
    error = "ERROR sglang_omni.engines.runtime.failure: a request failed: KeyError"
    assert error in kept(tmp_path)
    assert "closed" in kept(tmp_path)
    [record] = [one for one in caplog.records if one.name == "sglang_omni.engines.runtime.failure"]
    assert record.getMessage().startswith("a request failed: KeyError")
    assert (record.levelno, vars(record)["engine"]) == (logging.ERROR, "toy")
    assert capfd.readouterr() == ("", "")


async def test_where_all_is_shown_it_is_kept_as_well(tmp_path: Path, capfd: CapturedFiles) -> None:
    async with running("step", output=OutputRules(tmp_path, shown=True)):
        pass
    assert "closed" in kept(tmp_path)
    assert "[toy] closed" in capfd.readouterr().err


async def test_an_engine_that_dies_shows_its_last_lines_and_its_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running("step", output=OutputRules(tmp_path)) as engine:
        with pytest.raises(EngineFailed):
            await collect(engine, Count(1, fault="crash"))
        await eventually(lambda: "toy exited with 1" in caplog.text, within_s=5)
        assert engine.health.error == "exited with 1"
    assert "RuntimeError: the toy broke" in caplog.text
    assert f"Full output: {tmp_path / 'toy.log'}" in caplog.text


@pytest.mark.parametrize(
    ("fault", "says", "has_traceback"),
    [
        ("checkpoint", "toy could not start: toys.safetensors is missing", False),
        ("raise", "toy could not start: RuntimeError: no toys", True),
        ("exit", "toy exited with 3 while starting", False),
    ],
)
async def test_an_engine_that_does_not_start_names_its_file(
    tmp_path: Path, fault: str, says: str, has_traceback: bool
) -> None:
    spec = toy_spec("step", ToySettings(fault=fault), output=OutputRules(tmp_path))
    with pytest.raises(StartupError) as caught:
        await EngineProcess(spec).start()
    message = caught.value.message
    assert message.startswith(says)
    assert message.endswith(f"\nFull output: {tmp_path / 'toy.log'}")
    assert ("Traceback" in message) == has_traceback
    assert "Traceback" in kept(tmp_path) or fault == "exit"


def test_a_file_keeps_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "MAX_FILE_BYTES", 2000)
    lines = EngineOutput("toy", OutputRules(tmp_path))
    for number in range(500):
        lines.handle_line(f"line {number}")
    lines.close()
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 4000
    assert kept(tmp_path).endswith("line 499\n")


def test_an_endless_line_is_cut_in_errors_and_whole_in_the_file(tmp_path: Path) -> None:
    lines = EngineOutput("toy", OutputRules(tmp_path))
    lines.handle_line("x" * 13_441)
    lines.close()
    assert "x" * 13_441 in kept(tmp_path)
    assert lines.tail == "x" * 499 + "…"


def test_a_file_that_cannot_be_written_is_reported_once_and_its_lines_are_shown(
    capfd: CapturedFiles, caplog: pytest.LogCaptureFixture
) -> None:
    lines = EngineOutput("toy", OutputRules(Path("/dev/null")))
    lines.handle_line("first")
    lines.handle_line("second")
    assert caplog.text.count("cannot write /dev/null/toy.log: Not a directory") == 1
    assert capfd.readouterr().err == "[toy] first\n[toy] second\n"


def test_a_full_disk_is_reported_once_and_its_lines_are_shown(
    tmp_path: Path, capfd: CapturedFiles, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "toy.log").symlink_to("/dev/full")
    lines = EngineOutput("toy", OutputRules(tmp_path))
    lines.handle_line("first")
    lines.handle_line("second")
    assert caplog.text.count("No space left on device") == 1
    assert capfd.readouterr().err == "[toy] first\n[toy] second\n"


@pytest.mark.parametrize("message", ["plain", "two\nlines", "é 京 \ud800", '"quoted" \\'])
def test_a_record_survives_its_line(message: str) -> None:
    made: dict[str, Any] = {"name": "sglang_omni.x", "levelno": logging.WARNING, "msg": message}
    line = RecordFormatter().format(logging.makeLogRecord(made))
    assert "\n" not in line
    assert parse_record(line) == EngineRecord(logging.WARNING, "sglang_omni.x", message)


@pytest.mark.parametrize("line", ["", "loaded", "\x1e", "\x1e[1", "\x1e[1, 2]", "\x1e3"])
def test_what_is_no_record_is_a_line_of_its_own(line: str) -> None:
    assert parse_record(line) is None
