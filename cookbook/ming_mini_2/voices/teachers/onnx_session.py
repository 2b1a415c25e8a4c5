"""ONNX models on one core, because the recipe runs one process on each, or on a GPU.

A GPU is used where the installed `onnxruntime` has CUDA (the package `onnxruntime-gpu`), unless
the variable `TEACHERS_DEVICE` is `cpu`.
"""

import os
from functools import cache
from pathlib import Path
from typing import Any

CUDA = "CUDAExecutionProvider"
GPU_OPTIONS = {
    # Lengths differ from text to text, so that a search for the fastest kernel never pays.
    "cudnn_conv_algo_search": "HEURISTIC",
    "arena_extend_strategy": "kSameAsRequested",
}
GRAPH_ERRORS_ONLY = 3
"""Level of the log: that some nodes run on the CPU is no news."""


@cache
def runs_on_gpu() -> bool:
    """Return whether models run on a GPU."""
    import onnxruntime

    if os.environ.get("TEACHERS_DEVICE") == "cpu":
        return False
    return CUDA in onnxruntime.get_available_providers()


def open_session(model: Path | bytes) -> Any:
    """Return an `onnxruntime.InferenceSession` of a file or its bytes.

    Raises:
        RuntimeError: There is a GPU build of ONNX Runtime, and its GPU cannot be used.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    source = model if isinstance(model, bytes) else str(model)
    if not runs_on_gpu():
        cpu = ["CPUExecutionProvider"]
        return onnxruntime.InferenceSession(source, options, providers=cpu)
    # Of PyTorch's packages, which bring CUDA's libraries.
    onnxruntime.preload_dlls()
    options.log_severity_level = GRAPH_ERRORS_ONLY
    session = onnxruntime.InferenceSession(
        source, options, providers=[(CUDA, GPU_OPTIONS), "CPUExecutionProvider"]
    )
    if CUDA not in session.get_providers():
        raise RuntimeError("ONNX Runtime cannot use the GPU; TEACHERS_DEVICE=cpu does without")
    return session
