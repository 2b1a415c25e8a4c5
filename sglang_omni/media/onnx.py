"""Networks in ONNX form, run by onnxruntime on the CPU, which reports to nobody."""

import os
from pathlib import Path
from typing import Any

# Read as onnxruntime is loaded. Unset, it keeps an id of this machine in the user's home and
# reports to its makers; its own function for that (disable_telemetry_events) comes too late.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import onnxruntime

CPU = ["CPUExecutionProvider"]


def open_session(path: Path | str, threads: int = 0) -> Any:
    """Open a network; `threads` of 0 are as many as onnxruntime chooses. Its warnings are not
    shown."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = threads
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=CPU)
