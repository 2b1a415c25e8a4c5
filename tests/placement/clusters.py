"""Made-up machines."""

from collections.abc import Sequence

from sglang_omni.engines.remote.node_report import MachineReport, NodeReport
from sglang_omni.engines.runtime.gpus import Gpu
from sglang_omni.version import package_version

GB = 10**9


def cards_of(size_gb: int, count: int, name: str = "NVIDIA H200") -> tuple[Gpu, ...]:
    """Return so many GPUs of a size."""
    return tuple(Gpu(index, name, size_gb * GB, size_gb * GB) for index in range(count))


def h200s(count: int) -> tuple[Gpu, ...]:
    """Return so many H200."""
    return cards_of(150, count)


def node(
    name: str,
    gpus: Sequence[Gpu] | None,
    hostname: str = "",
    version: str | None = None,
    missing: tuple[str, ...] = (),
    error: str = "",
) -> NodeReport:
    """Return a machine of a cluster; None for GPUs makes one that does not answer."""
    machine = None
    if gpus is not None:
        machine = MachineReport(version or package_version(), tuple(gpus), missing)
    return NodeReport(name, f"10.0.0.{len(name)}", hostname, False, machine, error)


def server_node(gpus: Sequence[Gpu]) -> NodeReport:
    """Return the server's own machine `a`, with all its GPUs."""
    return NodeReport(
        "a", "10.0.1.1", "host-a", True, MachineReport(package_version(), tuple(gpus), ())
    )
