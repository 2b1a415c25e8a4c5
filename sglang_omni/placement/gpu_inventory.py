"""The GPUs of all machines of a server under one numbering. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from sglang_omni.engines.remote.node_report import NodeReport, find_report
from sglang_omni.engines.runtime.gpus import Gpu, parse_mask
from sglang_omni.placement.place_options import THIS_MACHINE, format_entry
from sglang_omni.protocol.errors import StartupError

# Below are indices on the server's machine, which without a driver does not know its own GPUs.
_FIRST_REMOTE = 1 << 16


@dataclass(frozen=True)
class GpuInventory:
    """The GPUs of the server's machine and of its cluster.

    The planner numbers them through. The numbers of those of the server's own machine are the
    indices that the options `gpus` use.

    Attributes:
        gpus: Every GPU; its `index` is its number.
        locations: By number, the machine, "" for the server's own, and the index there.
        reports: The nodes of the cluster; none without one.
        aliases: The numbers of those GPUs of the server's machine that are also a node's.
    """

    gpus: tuple[Gpu, ...]
    locations: Mapping[int, tuple[str, int]]
    reports: tuple[NodeReport, ...] = ()
    aliases: Mapping[tuple[str, int], int] = field(default_factory=dict)

    @property
    def local(self) -> tuple[Gpu, ...]:
        """Return the GPUs of the server's own machine."""
        return tuple(gpu for gpu in self.gpus if not self.get_node(gpu.index))

    @property
    def usable(self) -> tuple[int, ...]:
        """Return the numbers of the GPUs that the planner may choose.

        They are the server's own, and those of other nodes that can run engines. GPUs of its
        machine that `CUDA_VISIBLE_DEVICES` hides stay hidden.
        """
        good = {"", *(report.name for report in self.reports if _is_usable(report))}
        return tuple(gpu.index for gpu in self.gpus if self.get_node(gpu.index) in good)

    def get(self, number: int) -> Gpu:
        """Return a GPU."""
        return next(gpu for gpu in self.gpus if gpu.index == number)

    def get_node(self, number: int) -> str:
        """Return the machine of a GPU, "" for the server's own."""
        return self.locations[number][0]

    def find(self, node: str, index: int) -> int:
        """Return the number of a GPU that an option names.

        Raises:
            StartupError: There is no such node or GPU, or the node cannot run engines.
        """
        if node:
            node = self.find_usable_node(node).name
        number = self._numbers.get((node, index))
        if number is None:
            indices = [str(other) for place, other in self._numbers if place == node]
            raise StartupError(
                f"{node or THIS_MACHINE} has no GPU {index}; its GPUs: "
                f"{', '.join(indices) or 'none'}"
            )
        return number

    @cached_property
    def _numbers(self) -> dict[tuple[str, int], int]:
        return {**{place: number for number, place in self.locations.items()}, **self.aliases}

    def find_usable_node(self, name: str) -> NodeReport:
        """Return the node with a name. Raises `StartupError` if no engine can run there."""
        report = find_report(name, self.reports)
        if report.problem:
            raise StartupError(f"{report.name} cannot run engines: {report.problem}")
        return report

    def format_place(self, number: int) -> str:
        """Return a GPU as an entry of an option `place`."""
        return format_entry(*self.locations[number])


def build_inventory(
    local: Sequence[Gpu], reports: Sequence[NodeReport] = (), mask: str | None = None
) -> GpuInventory:
    """Number the GPUs of all machines.

    Args:
        local: The GPUs that the server may use.
        reports: The nodes of the cluster. One of them is the server's own machine.
        mask: The server's `CUDA_VISIBLE_DEVICES`; None if it is not set.
    """
    gpus, locations = list(local), {gpu.index: ("", gpu.index) for gpu in local}
    aliases: dict[tuple[str, int], int] = {}
    devices = None if mask is None else parse_mask(mask)
    for report in reports:
        for gpu in report.gpus:
            own = _find_own_index(gpu.index, devices, len(local)) if report.is_server else None
            if own is not None:
                aliases[report.name, gpu.index] = own
                continue
            number = _FIRST_REMOTE + len(gpus)
            locations[number] = (report.name, gpu.index)
            gpus.append(replace(gpu, index=number))
    return GpuInventory(tuple(gpus), locations, tuple(reports), aliases)


def _find_own_index(index: int, devices: Sequence[str] | None, count: int) -> int | None:
    """Return the server's index of a GPU of its machine; None if it is hidden from the server."""
    if devices is not None:
        return devices.index(str(index)) if str(index) in devices else None
    return index if index < count else None


def _is_usable(report: NodeReport) -> bool:
    # A name with a colon, such as an IPv6 address, cannot be written in an option `place`.
    return not report.is_server and not report.problem and ":" not in report.name
