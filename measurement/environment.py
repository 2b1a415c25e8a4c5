"""Fingerprint of the machine and software of a measurement: hardware, versions and commit."""

import os
import platform
import re
import subprocess
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path


def fingerprint() -> dict[str, str]:
    """Return names and versions; an unavailable value is "unknown".

    `devices` is the number of GPUs, or of CPU cores on a machine without GPUs.
    """
    # Imported here: it takes seconds, also for a client that measures another machine.
    import torch

    cuda = torch.cuda.is_available()
    return {
        "device": torch.cuda.get_device_name() if cuda else _processor(),
        "devices": str(torch.cuda.device_count() if cuda else os.cpu_count()),
        "torch": torch.__version__,
        "cuda": torch.version.cuda or "none",
        "python": platform.python_version(),
        "commit": _commit(),
    }


def deep_gemm_version() -> str:
    """Return the version of DeepGEMM, which SGLang uses for FP8 GEMMs where it is installed."""
    try:
        return version("sgl-deep-gemm")
    except PackageNotFoundError:
        return "not installed"


def has_deep_gemm() -> bool:
    """Return whether SGLang finds DeepGEMM."""
    return find_spec("deep_gemm") is not None


def _processor() -> str:
    """Return the model of the CPU; Python's own answer is empty on many Linux systems."""
    try:
        found = re.search(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    except OSError:
        found = None
    return found[1] if found else platform.processor() or platform.machine() or "unknown"


def _commit() -> str:
    """Return the commit of this checkout, marked as dirty when files differ from it."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    folder = Path(__file__).parent
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()
