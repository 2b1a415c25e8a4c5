"""ONNX models on one core, because the recipe runs one process on each."""

from pathlib import Path
from typing import Any


def open_session(model: Path | bytes) -> Any:
    """Return an `onnxruntime.InferenceSession` of a file or its bytes, with one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    source = model if isinstance(model, bytes) else str(model)
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
