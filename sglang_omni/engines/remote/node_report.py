"""What a machine of the cluster says of itself before engines are placed. Plain data; no Ray."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sglang_omni.engines.runtime.gpus import Gpu, list_visible_gpus
from sglang_omni.protocol.errors import StartupError
from sglang_omni.version import package_version


@dataclass(frozen=True)
class MachineReport:
    """A machine's sglang-omni, GPUs and files.

    Attributes:
        version: Its version of sglang-omni.
        gpus: All its GPUs, in the driver's order.
        missing: Those of the paths asked for that it does not have.
    """

    version: str
    gpus: tuple[Gpu, ...]
    missing: tuple[str, ...]


@dataclass(frozen=True)
class NodeReport:
    """A living node of a Ray cluster.

    Attributes:
        name: Its name, by default its address.
        address: Its address.
        hostname: Its host name.
        is_server: Whether it is the machine of the server itself.
        machine: What it says of itself; None if it did not answer.
        error: Why it did not.
    """

    name: str
    address: str
    hostname: str
    is_server: bool = False
    machine: MachineReport | None = None
    error: str = ""

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """Return its GPUs."""
        return self.machine.gpus if self.machine else ()

    @property
    def problem(self) -> str:
        """Return why no engine of this server can run on the node; "" if one can."""
        if self.machine is None:
            return f"it did not answer: {self.error}"
        if self.machine.version != package_version():
            return f"it has sglang-omni {self.machine.version}, and the server {package_version()}"
        if self.machine.missing:
            return f"it lacks {', '.join(self.machine.missing)}"
        return ""


def report_machine(paths: Sequence[Path]) -> MachineReport:
    """Describe the machine of this process; `paths` are the files and folders that it must have."""
    missing = tuple(str(path) for path in paths if not os.access(path, os.R_OK))
    return MachineReport(package_version(), list_visible_gpus(), missing)


def find_report(name: str, reports: Sequence[NodeReport]) -> NodeReport:
    """Return the report of the node with this name, address or host name.

    Raises:
        StartupError: There is none, or more than one.
    """
    for key in ("name", "address", "hostname"):
        found = [report for report in reports if getattr(report, key) == name]
        if len(found) == 1:
            return found[0]
        if found:
            raise StartupError(f"the Ray cluster has {len(found)} nodes {name!r}")
    names = ", ".join(sorted(report.name for report in reports))
    raise StartupError(f"the Ray cluster has no node {name!r}; its nodes: {names}")
