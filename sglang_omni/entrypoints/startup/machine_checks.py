"""What `sgl-omni doctor` finds out about a machine, each with what to do about it."""

import os
import platform
import resource
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Literal

from packaging.requirements import Requirement

from sglang_omni.engines.runtime.gpus import Gpu
from sglang_omni.entrypoints.startup.cache_folders import find_home_problem, require_temporary_space
from sglang_omni.protocol.errors import OmniError

Outcome = Literal["ok", "warning", "problem"]
PACKAGE = "sglang_omni"
PYTHONS = ((3, 11), (3, 12))
GIB = 1 << 30
# What the bundled model takes on a CPU, and what a server with GPUs exchanges.
MEMORY_BYTES, SHARED_MEMORY_BYTES, SHARED_MEMORY_ON_GPUS = 6 * GIB, GIB // 4, 8 * GIB
OPEN_FILES = 4096
SHARED_MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class Check:
    """A finding: what was looked at, how it is, and what to do unless it is fine."""

    name: str
    outcome: Outcome
    text: str
    advice: str = ""


def check_python(found: tuple[int, int] = sys.version_info[:2]) -> Check:
    """Check the version of Python."""
    text = platform.python_version()
    if found in PYTHONS:
        return Check("Python", "ok", text)
    supported = " or ".join(f"{major}.{minor}" for major, minor in PYTHONS)
    return Check("Python", "problem", text, f"use {supported}")


def list_requirements() -> list[Requirement]:
    """Return what the package needs to run, without extras."""
    found = map(Requirement, requires(PACKAGE) or ())
    return [one for one in found if one.marker is None or one.marker.evaluate({"extra": ""})]


def find_versions(names: Iterable[str]) -> dict[str, str]:
    """Return the installed version of each package, "" for one that is missing."""

    def find(name: str) -> str:
        try:
            return version(name)
        except PackageNotFoundError:
            return ""

    return {name: find(name) for name in names}


def check_packages(requirements: Sequence[Requirement], versions: Mapping[str, str]) -> Check:
    """Check that every required package is installed in a version that it may have."""
    wrong = [
        f"{one.name} {versions[one.name] or 'is missing'}, needs {one.specifier or 'any version'}"
        for one in requirements
        if not versions[one.name] or not one.specifier.contains(versions[one.name], True)
    ]
    shown = ", ".join(
        f"{name} {versions[name]}" for name in ("sglang", "torch") if name in versions
    )
    if not wrong:
        return Check("packages", "ok", f"{len(requirements)} as required, {shown}")
    return Check(
        "packages", "problem", "; ".join(wrong), "make install, or pip install the package"
    )


def check_memory(total_bytes: int, available_bytes: int) -> Check:
    """Check the memory of the machine."""
    text = f"{available_bytes / GIB:.1f} of {total_bytes / GIB:.1f} GiB free"
    if available_bytes >= MEMORY_BYTES:
        return Check("memory", "ok", text)
    advice = f"the bundled model takes {MEMORY_BYTES / GIB:.0f} GiB; end other programs"
    return Check("memory", "warning", text, advice)


def read_memory(text: str) -> tuple[int, int]:
    """Return the total and the available bytes that `/proc/meminfo` tells."""
    rows = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    total, available = (int(rows[name].split()[0]) for name in ("MemTotal", "MemAvailable"))
    return total * 1024, available * 1024


def check_shared_memory(folder: Path, has_gpus: bool) -> Check:
    """Check the room in `/dev/shm`, through which engines exchange media and sound."""
    try:
        free_bytes = shutil.disk_usage(folder).free
    except OSError as error:
        return Check("shared memory", "problem", f"{folder}: {error.strerror}", f"mount {folder}")
    text = f"{free_bytes / GIB:.2f} GiB free in {folder}"
    needed = SHARED_MEMORY_ON_GPUS if has_gpus else SHARED_MEMORY_BYTES
    if free_bytes >= needed:
        return Check("shared memory", "ok", text)
    size = "16g" if has_gpus else "1g"
    return Check("shared memory", "warning", text, f"give it more: docker run --shm-size {size}")


def check_temporary_folder() -> Check:
    """Check that the temporary folder has room."""
    try:
        require_temporary_space()
    except OmniError as error:
        return Check("temporary folder", "problem", error.message, "set TMPDIR to another folder")
    return Check("temporary folder", "ok", "writable")


def check_home(environment: Mapping[str, str] = os.environ) -> Check:
    """Check that caches of compiled kernels can be kept."""
    problem = find_home_problem(environment)
    if not problem:
        return Check("caches", "ok", "kept in the home folder")
    advice = "set HOME to a folder that outlives restarts, or every start compiles kernels again"
    return Check("caches", "warning", problem, advice)


def check_open_files(limit: int | None = None) -> Check:
    """Check how many files and connections a process may have open."""
    if limit is None:
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if limit == resource.RLIM_INFINITY:
        return Check("open files", "ok", "unlimited")
    if limit >= OPEN_FILES:
        return Check("open files", "ok", str(limit))
    advice = f"raise the hard limit to {OPEN_FILES}: ulimit -Hn, LimitNOFILE"
    return Check("open files", "warning", str(limit), advice)


def check_gpus(gpus: Sequence[Gpu], device: str) -> Check:
    """Check the GPUs. `device` is the option, with which they may be left alone."""
    if device == "cpu":
        return Check("GPUs", "ok", "not used: --device cpu")
    if not gpus and device == "cuda":
        advice = "install NVIDIA's driver; in a container give --gpus all"
        return Check("GPUs", "problem", "none found", advice)
    if not gpus:
        return Check("GPUs", "ok", "none found, so that everything runs on the CPU")
    shown = "; ".join(map(_describe_gpu, gpus))
    busy = [gpu for gpu in gpus if gpu.free_bytes < 0.9 * gpu.total_bytes]
    if busy:
        return Check("GPUs", "warning", shown, "others use them; nvidia-smi shows who")
    return Check("GPUs", "ok", shown)


def _describe_gpu(gpu: Gpu) -> str:
    free, total = gpu.free_bytes / GIB, gpu.total_bytes / GIB
    return f"{gpu.index} {gpu.name}, {free:.0f} of {total:.0f} GiB free"
