"""Run ONNX networks with onnxruntime on the CPU, without its telemetry."""

import os
from pathlib import Path
from typing import Any

# onnxruntime reads this when it is loaded. Otherwise it stores a machine id in the user's home and
# sends telemetry. Its own function (disable_telemetry_events) takes effect too late.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import onnxruntime

CPU = ["CPUExecutionProvider"]


def open_session(path: Path | str, threads: int = 0) -> Any:
    """Open a network. With `threads` 0 onnxruntime chooses their number. Warnings are not shown."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = threads
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=CPU)
