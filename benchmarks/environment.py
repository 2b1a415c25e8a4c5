"""Where a measurement was made: hardware, versions and commit, to stand beside its numbers."""

import platform
import subprocess
from pathlib import Path

import torch


def fingerprint() -> dict[str, str]:
    """Names and versions; a value that cannot be had is "unknown"."""
    cuda = torch.cuda.is_available()
    return {
        "device": torch.cuda.get_device_name() if cuda else platform.processor() or "cpu",
        "devices": str(torch.cuda.device_count()),
        "torch": torch.__version__,
        "cuda": torch.version.cuda or "none",
        "python": platform.python_version(),
        "commit": _commit(),
    }


def _commit() -> str:
    """The commit of this checkout, marked when files differ from it."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    folder = Path(__file__).parent
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()
