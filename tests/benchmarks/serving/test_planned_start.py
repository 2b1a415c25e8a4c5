"""What a measured start keeps of a server."""

from pathlib import Path

import httpx
import pytest

from benchmarks.serving.planned_start import parse_arguments, read_counters, read_logs

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
