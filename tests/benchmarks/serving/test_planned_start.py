"""What a measured start keeps of a server."""

import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from benchmarks.serving.planned_start import end, parse_arguments, read_counters, read_logs

METRICS = """\
# TYPE sgl_omni_engine_kv_tokens_capacity gauge
sgl_omni_engine_kv_tokens_capacity{engine="thinker",node="",replica="0"} 65536.0
# TYPE sgl_omni_engine_gpu_peak_bytes gauge
sgl_omni_engine_gpu_peak_bytes{engine="talker",node="",replica="1"} 5e+09
# TYPE sgl_omni_engine_up gauge
sgl_omni_engine_up{engine="talker",node="",replica="1"} 1.0
"""


def test_counters_of_memory_are_kept_by_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(httpx, "get", lambda url: httpx.Response(200, text=METRICS))
    assert read_counters("http://127.0.0.1:1") == {
        "kv_tokens_capacity": {"thinker  0": 65536.0},
        "gpu_peak_bytes": {"talker  1": 5e9},
    }


def test_lines_of_every_log_are_read(tmp_path: Path) -> None:
    for name in ("talker", "thinker"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "engine.log").write_text(f"{name} 1\n{name} 2\n")
    assert list(read_logs(tmp_path)) == ["talker 1", "talker 2", "thinker 1", "thinker 2"]


def test_options_of_the_server_come_last(tmp_path: Path) -> None:
    serve = ["--placement", "auto"]
    arguments = parse_arguments(["--model-path", str(tmp_path), "--out", "o.json", "--", *serve])
    assert arguments.options == serve


def test_a_server_that_does_not_end_is_killed(capsys: pytest.CaptureFixture[str]) -> None:
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True)"
    command = [sys.executable, "-c", f"{deaf}; signal.pause()"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        end(process, within_s=0.2)
        assert process.returncode == -signal.SIGKILL
    assert "has not ended" in capsys.readouterr().out
