"""ONNX models on one core, because the recipe runs one process on each, or on a GPU.

A GPU is used where the installed `onnxruntime` has CUDA (the package `onnxruntime-gpu`), unless
the variable `TEACHERS_DEVICE` is `cpu`. A GPU gives every process that uses it the same share of
its time, so that only `TEACHERS_AT_ONCE` processes (4) of one program use it at the same time:
otherwise a training beside twenty teachers would nearly stand still.
"""

import os
from collections.abc import Mapping
from contextlib import nullcontext
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

CUDA = "CUDAExecutionProvider"
GPU_OPTIONS = {
    # Lengths differ from text to text, so that a search for the fastest kernel never pays.
    "cudnn_conv_algo_search": "HEURISTIC",
    "arena_extend_strategy": "kSameAsRequested",
}
GRAPH_ERRORS_ONLY = 3
"""Level of the log: that some nodes run on the CPU is no news."""
_places_on_gpu = get_context("fork").BoundedSemaphore(int(os.environ.get("TEACHERS_AT_ONCE", "4")))
"""Forked processes share it with the program that imported this module."""


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


def render(session: Any, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the speech that a session of `open_session` makes: float32 samples [n]."""
    with _places_on_gpu if runs_on_gpu() else nullcontext():
        samples = session.run(None, inputs)[0]
    return np.asarray(samples, dtype=np.float32).ravel()
