"""Reads the options `place`: the machine and the GPUs of each replica of an engine."""

from collections.abc import Sequence
from dataclasses import dataclass

from sglang_omni.config.config_errors import make_option_error
from sglang_omni.config.tree import Config

THIS_MACHINE = "local"


@dataclass(frozen=True)
class Place:
    """A machine, "" for the server's own, and the GPUs there, none for a CPU."""

    node: str = ""
    gpus: tuple[int, ...] = ()

    @property
    def device(self) -> str:
        """Return PyTorch's name of the device in the engine's process.

        An engine on another machine sees its own GPUs only.
        """
        if not self.gpus:
            return "cpu"
        return "cuda:0" if self.node else f"cuda:{self.gpus[0]}"


def format_entry(node: str, gpu: int) -> str:
    """Return the entry of an option `place` for a GPU of a machine, "" for the server's own."""
    return f"{node or THIS_MACHINE}:{gpu}"


def get_places(config: Config, section: str, device: str, ranks: int = 1) -> tuple[Place, ...]:
    """Return the places that the option `place` of an engine names, none if it is unset.

    Args:
        config: The server's configuration.
        section: The engine's section.
        device: "cpu", or "cuda".
        ranks: The number of GPUs of a replica, which are entries that follow each other.

    Raises:
        ConfigError: An entry is no place, or the cluster of its machine is not configured.
    """
    path = f"{section}.place"
    entries = [_parse(path, entry, device) for entry in getattr(config, section).place]
    groups = [entries[first : first + ranks] for first in range(0, len(entries), ranks)]
    places = tuple(_join(path, group, ranks) for group in groups)
    if any(place.node for place in places) and config.cluster.ray_address is None:
        raise make_option_error(
            "cluster.ray_address", f"{path} names another machine, and cluster.ray_address is unset"
        )
    options = getattr(config, section)
    if places and getattr(options, "gpus", ()):
        raise make_option_error(path, f"{path} and {section}.gpus cannot both be set")
    return places


def _parse(path: str, entry: str, device: str) -> Place:
    name, _, gpu = entry.partition(":")
    if not name or (gpu and not gpu.isdecimal()):
        raise make_option_error(path, f"{path}: {entry!r} is neither NODE nor NODE:GPU")
    if gpu and device == "cpu":
        raise make_option_error(path, f"{path}: {entry!r} names a GPU, and the engine uses none")
    gpus = () if device == "cpu" else (int(gpu or 0),)
    return Place("" if name == THIS_MACHINE else name, gpus)


def _join(path: str, group: Sequence[Place], ranks: int) -> Place:
    """Return the place of a replica from those of its ranks."""
    gpus = tuple(gpu for place in group for gpu in place.gpus)
    if len(group) != ranks or len({place.node for place in group}) != 1:
        raise make_option_error(
            path, f"{path} must name {ranks} GPUs of one machine for each replica"
        )
    if len(set(gpus)) != len(gpus):
        raise make_option_error(path, f"{path} must name different GPUs for the ranks of a replica")
    return Place(group[0].node, gpus)
