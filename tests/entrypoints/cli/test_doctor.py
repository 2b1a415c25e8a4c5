"""`sgl-omni doctor`: what it finds on this machine, and what it says of others."""

import json
import resource
import shutil
import socket
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from sglang_omni.engines.runtime.gpus import Gpu
from sglang_omni.entrypoints.cli.main import main
from sglang_omni.entrypoints.startup import machine_checks
from sglang_omni.entrypoints.startup.machine_checks import (
    GIB,
    check_gpus,
    check_home,
    check_memory,
    check_open_files,
    check_packages,
    check_python,
    check_shared_memory,
    check_temporary_folder,
    read_memory,
)
from sglang_omni.protocol.errors import StartupError
from tests.testing.golden import TINY

MEMINFO = "MemTotal:       16384 kB\nMemFree:  1 kB\nMemAvailable:    8192 kB\n"


def run(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, dict[str, dict[str, str]]]:
    """Run the command. Returns its status, and the findings by name."""
    status = main(["doctor", "--json", "--port", "0", *options])
    found = json.loads(capsys.readouterr().out)
    return status, {check["name"]: check for check in found}


def test_this_machine_can_serve_the_bundled_model(capsys: pytest.CaptureFixture[str]) -> None:
    status, found = run(capsys)
    assert status == 0
    assert all(check["outcome"] != "problem" for check in found.values())
    assert found["checkpoint"]["text"] == "ming-mini, complete"
    assert "joan" in found["voices"]["text"]
    assert "sglang" in found["packages"]["text"]


def test_findings_are_lines_with_what_to_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_checks, "OPEN_FILES", 1 << 40)
    assert main(["doctor", "--port", "0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (place,) = (index for index, line in enumerate(lines) if line.startswith("! open files"))
    assert "ulimit -Hn" in lines[place + 1]
    assert any(line.startswith("✓ Python") for line in lines)


@pytest.mark.parametrize(
    ("options", "name", "reason"),
    [
        (("--model-path", "/nowhere"), "checkpoint", "has no config.json"),
        (("--voice", "nobody"), "voices", "no voice 'nobody'; the checkpoint has"),
        (("--device", "cuda"), "GPUs", "none found"),
        (("--tls-certificate", "a.pem"), "options", "must be set together"),
        (("--api-key", "env:NOT_SET_ANYWHERE"), "options", "NOT_SET_ANYWHERE"),
    ],
)
def test_what_would_end_a_start_is_a_problem(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    name: str,
    reason: str,
) -> None:
    monkeypatch.setattr("sglang_omni.entrypoints.cli.doctor.list_visible_gpus", lambda: ())
    status, found = run(capsys, *options)
    assert status == 1
    assert found[name]["outcome"] == "problem"
    assert reason in found[name]["text"]


def test_a_port_in_use_is_a_problem(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        status, found = run(capsys, "--port", str(holder.getsockname()[1]))
    assert status == 1
    assert "is in use" in found["port"]["text"]


def test_a_missing_shard_is_a_problem(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(TINY, folder)
    shards = sorted(folder.glob("*.safetensors"))
    shards[-1].unlink()
    status, found = run(capsys, "--model-path", str(folder))
    assert status == 1
    assert found["checkpoint"]["outcome"] == "problem"


def test_packages_of_other_versions_are_named() -> None:
    needed = [Requirement(one) for one in ("sglang==1.0", "torch>=2", "numpy")]
    check = check_packages(needed, {"sglang": "1.1", "torch": "", "numpy": "2.0"})
    assert check.outcome == "problem"
    assert check.text == "sglang 1.1, needs ==1.0; torch is missing, needs >=2"
    fine = check_packages(needed, {"sglang": "1.0", "torch": "2.1", "numpy": "2.0"})
    assert (fine.outcome, fine.text) == ("ok", "3 as required, sglang 1.0, torch 2.1")


def test_other_pythons_and_little_memory_are_told() -> None:
    assert check_python((3, 12)).outcome == "ok"
    assert check_python((3, 10)).advice == "use 3.11 or 3.12"
    assert read_memory(MEMINFO) == (16384 * 1024, 8192 * 1024)
    assert check_memory(8 * GIB, 7 * GIB).outcome == "ok"
    assert check_memory(8 * GIB, 3 * GIB).outcome == "warning"


def test_shared_memory_is_told_by_what_engines_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=GIB)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)
    assert check_shared_memory(tmp_path, has_gpus=False).outcome == "ok"
    assert "--shm-size 16g" in check_shared_memory(tmp_path, has_gpus=True).advice


def test_folders_that_cannot_be_used_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert check_shared_memory(tmp_path / "none", has_gpus=False).outcome == "problem"
    assert check_home({"HOME": str(tmp_path / "none")}).outcome == "warning"
    assert check_home({"HOME": str(tmp_path)}).outcome == "ok"

    def refuse() -> None:
        raise StartupError("no room")

    monkeypatch.setattr(machine_checks, "require_temporary_space", refuse)
    assert check_temporary_folder().text == "no room"


def test_limits_of_open_files_are_told() -> None:
    assert check_open_files(100).outcome == "warning"
    assert check_open_files(65536).outcome == "ok"
    assert check_open_files(resource.RLIM_INFINITY).text == "unlimited"


def test_gpus_are_told_with_their_memory() -> None:
    free, busy = Gpu(0, "H100", 80 * GIB, 79 * GIB), Gpu(1, "H100", 80 * GIB, 10 * GIB)
    assert check_gpus((free,), "auto").text == "0 H100, 79 of 80 GiB free"
    assert check_gpus((free, busy), "auto").outcome == "warning"
    assert check_gpus((busy,), "cpu").outcome == "ok"
    assert check_gpus((), "auto").outcome == "ok"
    assert "--gpus all" in check_gpus((), "cuda").advice
