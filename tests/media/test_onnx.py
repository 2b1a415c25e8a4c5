"""onnxruntime keeps no id of this machine, and so reports nothing about it."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEAR = """
import numpy, time
from sglang_omni.media.vad import SileroDetector
SileroDetector().push(numpy.zeros(16000, numpy.int16))
time.sleep(1)
"""


def test_a_process_that_listens_leaves_no_trace(tmp_path: Path) -> None:
    places = {name: str(tmp_path) for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME")}
    environment = {**os.environ, **places, "PYTHONPATH": str(ROOT)}
    environment.pop("ORT_DISABLE_TELEMETRY", None)
    subprocess.run([sys.executable, "-c", HEAR], env=environment, check=True, timeout=60)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
