"""Check the places that a configuration names against what the machines have. Pure functions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sglang_omni.config.tree import Config
from sglang_omni.models.sizes import CheckpointSizes
from sglang_omni.placement.cluster_plan import compute_room, find_room
from sglang_omni.placement.gpu_inventory import GpuInventory
from sglang_omni.placement.place_options import THIS_MACHINE, Place, get_places
from sglang_omni.placement.plan import (
    Demand,
    GpuShare,
    PlacementConstraints,
    build_shares,
    get_usable_bytes,
    list_demands,
)
from sglang_omni.protocol.errors import StartupError

GB = 1e9
# The section of the options of each part that the option `place` can move.
SECTIONS = {
    "talker": "talker",
    "image encoder": "image_encoder",
    "audio encoder": "audio_encoder",
    "image": "image",
}
_MAX_SUGGESTIONS = 4


@dataclass(frozen=True)
class NamedPlaces:
    """Where the options `place` put the engines.

    Attributes:
        on_gpus: The places of each part that runs on GPUs, for those whose option is set.
        on_cpus: The places of each section that runs on CPUs.
    """

    on_gpus: Mapping[str, tuple[Place, ...]]
    on_cpus: Mapping[str, tuple[Place, ...]]


def read_places(config: Config, device: str) -> NamedPlaces:
    """Return the places of all engines.

    Args:
        config: The server's configuration.
        device: "cpu" or "cuda".

    Raises:
        ConfigError: An entry is no place.
    """
    on_gpus: dict[str, tuple[Place, ...]] = {}
    on_cpus = {"media": get_places(config, "media", "cpu")}
    image_device = device if config.image.device == "auto" else config.image.device
    for part, section in SECTIONS.items():
        kind = image_device if part == "image" else device
        ranks = config.image_encoder.tp_size if part == "image encoder" and kind != "cpu" else 1
        places = get_places(config, section, kind, ranks)
        if kind == "cpu":
            on_cpus[section] = places
        else:
            on_gpus[part] = places
    return NamedPlaces(
        {part: places for part, places in on_gpus.items() if places},
        {section: places for section, places in on_cpus.items() if places},
    )


def check_nodes(places: NamedPlaces, inventory: GpuInventory) -> None:
    """Check the machines of engines that run on CPUs.

    Raises:
        StartupError: A place names a machine that there is not, or that cannot run engines. The
            message names those that can.
    """
    for section, named in places.on_cpus.items():
        for place in named:
            if not place.node:
                continue
            try:
                inventory.find_usable_node(place.node)
            except StartupError as error:
                good = [THIS_MACHINE]
                good += [r.name for r in inventory.reports if not r.problem and not r.is_server]
                raise StartupError(
                    f"{section}.place: {error.message}\nplaces that can be used: {', '.join(good)}"
                ) from None


def number_places(
    places: NamedPlaces,
    inventory: GpuInventory,
    sizes: CheckpointSizes,
    constraints: PlacementConstraints,
    thinker: Sequence[int],
) -> dict[str, tuple[int, ...]]:
    """Return the numbers of the GPUs of each part whose option `place` is set.

    Args:
        places: What the options name.
        inventory: What there is.
        sizes: Sizes of the checkpoint.
        constraints: The GPUs of parts that `gpus` names, and the limits of engines.
        thinker: The GPUs of the thinker.

    Raises:
        StartupError: A machine or a GPU cannot be used. The message names the nearest that fit.
    """
    demands = list_demands(sizes, constraints)
    assignment = {
        part: gpus for part, gpus in constraints.fixed.items() if part not in places.on_gpus
    }
    for part, named in places.on_gpus.items():
        assignment[part] = ()
        for place in named:
            try:
                assignment[part] += tuple(inventory.find(place.node, gpu) for gpu in place.gpus)
            except StartupError as error:
                nearest = ""
                for demand in (one for one in demands if one.part == part):
                    room = compute_room(sizes, constraints, inventory, thinker, demands, assignment)
                    room = _drop_unplanned(room, inventory, thinker)
                    nearest = "\n" + _suggest(demand, inventory, room, place.node, thinker)
                raise StartupError(f"{SECTIONS[part]}.place: {error.message}{nearest}") from None
    return assignment


def check_room(
    places: NamedPlaces,
    inventory: GpuInventory,
    sizes: CheckpointSizes,
    constraints: PlacementConstraints,
    thinker: Sequence[int],
    assignment: Mapping[str, tuple[int, ...]],
) -> tuple[GpuShare, ...]:
    """Return what every engine takes of the GPUs, if the named ones hold all of it.

    The arguments are those of `number_places`, and what it returned with the places of the other
    engines.

    Raises:
        StartupError: A GPU that an option `place` names is too small. The message names the
            nearest that fit.
    """
    demands = list_demands(sizes, constraints)
    shares = build_shares(sizes, constraints, thinker, demands, assignment)
    parts = {demand.part for demand in demands} & places.on_gpus.keys()
    named = {number for part in parts for number in assignment.get(part, ())}
    for number in sorted(named):
        on_gpu = [share for share in shares if share.gpu == number]
        gpu = inventory.get(number)
        if sum(share.total_bytes for share in on_gpu) <= get_usable_bytes(gpu):
            continue
        moved = _select_moved(on_gpu, places, get_usable_bytes(gpu))
        # It gives back what it would take here.
        left = {**assignment, moved.part: [gpu for gpu in assignment[moved.part] if gpu != number]}
        room = compute_room(sizes, constraints, inventory, thinker, demands, left)
        room = _drop_unplanned(room, inventory, thinker)
        demand = next(one for one in demands if one.part == moved.part)
        content = ", ".join(_describe_share(share) for share in on_gpu)
        raise StartupError(
            f"{SECTIONS[moved.part]}.place: {inventory.format_place(number)}, {gpu.name} of "
            f"{gpu.total_bytes / GB:.0f} GB, cannot hold {content}\n"
            + _suggest(demand, inventory, room, inventory.get_node(number), thinker)
        )
    return shares


def _select_moved(shares: Sequence[GpuShare], places: NamedPlaces, usable_bytes: int) -> GpuShare:
    """Return the smallest share that `place` moves and that makes room enough, or the largest."""
    total_bytes = sum(share.total_bytes for share in shares)
    movable = sorted(
        (share for share in shares if share.part in places.on_gpus),
        key=lambda share: share.total_bytes,
    )
    fitting = (s for s in movable if total_bytes - s.total_bytes <= usable_bytes)
    return next(fitting, movable[-1])


def _describe_share(share: GpuShare) -> str:
    return (
        f"{share.part} ({share.weight_bytes / GB:.1f} GB of weights, "
        f"{share.working_bytes / GB:.1f} GB of working memory)"
    )


def _drop_unplanned(
    room: Mapping[int, int], inventory: GpuInventory, thinker: Sequence[int]
) -> dict[int, int]:
    """Return the room without that of this machine if the thinker is not planned yet."""
    return {gpu: free for gpu, free in room.items() if thinker or inventory.get_node(gpu)}


def _suggest(
    demand: Demand,
    inventory: GpuInventory,
    room: Mapping[int, int],
    near: str,
    thinker: Sequence[int],
) -> str:
    """Return the places that have room for an engine, or what the roomiest lacks.

    Those of the machine `near` come first. Without a `thinker` its GPUs are yet to be planned.
    """
    hint = "" if thinker else f"; unset {SECTIONS[demand.part]}.place to let the placement choose"

    def rank(number: int) -> tuple[int, int, int]:
        return inventory.get_node(number) != near, -room[number], number

    groups = list(find_room(demand, inventory, room, rank))[:_MAX_SUGGESTIONS]
    need = f"{demand.part} takes {demand.total_bytes / GB:.1f} GB"
    if demand.ranks > 1:
        need += f" of each of {demand.ranks} GPUs of one machine"
    if groups:
        found = "; ".join(",".join(map(inventory.format_place, group)) for group in groups)
        return f"{need}; it fits on {found}{hint}"
    usable = set(inventory.usable) & room.keys()
    if not usable:
        return f"{need}; no other machine has a GPU that can be used{hint}"
    roomiest = max(usable, key=lambda number: room[number])
    return (
        f"{need}; the most room is on {inventory.format_place(roomiest)}: "
        f"{max(room[roomiest], 0) / GB:.1f} GB{hint}"
    )


def format_cpu_places(places: NamedPlaces) -> Iterator[str]:
    """Yield a line for each engine on CPUs that has places."""
    for section, named in places.on_cpus.items():
        nodes = ", ".join(place.node or THIS_MACHINE for place in named)
        yield f"  {section} on {nodes}"
