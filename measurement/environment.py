"""Where a measurement was made: hardware, versions and commit, to stand beside its numbers."""

import os
import platform
import re
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def fingerprint() -> dict[str, str]:
    """Names and versions; a value that cannot be had is "unknown". `devices` counts cards, or the
    cores of a machine without any."""
    # Here, for a client that measures another machine waits seconds for it.
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


def deep_gemm() -> str:
    """The version of DeepGEMM, which SGLang takes for products in FP8 where it is installed."""
    try:
        return version("sgl-deep-gemm")
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    """The model of the processor; Python's own answer is empty on many Linux systems."""
    try:
        found = re.search(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    except OSError:
        found = None
    return found[1] if found else platform.processor() or platform.machine() or "unknown"


def _commit() -> str:
    """The commit of this checkout, marked when files differ from it."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    folder = Path(__file__).parent
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()
