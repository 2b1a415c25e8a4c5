"""Plan the placement of engines on the GPUs of several machines. Pure functions.

The thinker stays on the server's own machine. If all engines fit there, they stay there too, since
a network adds milliseconds and faults. Otherwise each engine in turn takes a free GPU of this
machine, else room beside the thinker, else the emptiest GPU of another machine. The image engine is
the last, so that it moves first: its long steps would slow down the thinker the most. If that does
not fit, the largest engine is the first, and other machines come before the thinker's GPUs.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from sglang_omni.models.sizes import CheckpointSizes
from sglang_omni.placement.gpu_inventory import GpuInventory
from sglang_omni.placement.plan import (
    Demand,
    PlacementConstraints,
    PlacementPlan,
    build_plan,
    build_shares,
    compute_free_bytes,
    compute_token_bytes,
    fill_layout,
    iter_layouts,
    list_demands,
)

# The order in which an engine takes GPUs: lower is earlier.
Rank = Callable[[int], tuple[int, int, int]]


def make_cluster_plan(
    sizes: CheckpointSizes, inventory: GpuInventory, constraints: PlacementConstraints
) -> PlacementPlan | None:
    """Return the best placement that fits, or None. Its GPUs are numbers of `inventory`."""
    layouts = list(iter_layouts(inventory.local, constraints))
    for thinker, others in layouts:
        plan = fill_layout(sizes, inventory.gpus, constraints, thinker, others)
        if plan is not None:
            return plan
    if len(inventory.usable) == len(inventory.local):
        return None
    thinkers = sorted({thinker for thinker, _ in layouts}, key=len, reverse=True)
    for is_packed in (False, True):
        for thinker in thinkers:
            plan = _spread(sizes, inventory, constraints, thinker, is_packed)
            if plan is not None:
                return plan
    return None


def _spread(
    sizes: CheckpointSizes,
    inventory: GpuInventory,
    constraints: PlacementConstraints,
    thinker: tuple[int, ...],
    is_packed: bool,
) -> PlacementPlan | None:
    """Return a plan with one engine after the other where there is room, or None.

    `is_packed` begins with the largest engine, and uses the thinker's GPUs last.
    """
    demands = list_demands(sizes, constraints)
    order = sorted(demands, key=lambda one: -one.total_bytes) if is_packed else demands
    assignment = dict(constraints.fixed)
    for demand in order:
        if demand.part in assignment:
            continue
        free = compute_room(sizes, constraints, inventory, thinker, demands, assignment)
        rank = _rank_gpus(inventory, thinker, assignment, is_packed)
        found = next(find_room(demand, inventory, free, rank), None)
        if found is None:
            return None
        assignment[demand.part] = found
    return build_plan(sizes, inventory.gpus, constraints, thinker, assignment)


def compute_room(
    sizes: CheckpointSizes,
    constraints: PlacementConstraints,
    inventory: GpuInventory,
    thinker: Sequence[int],
    demands: Sequence[Demand],
    assignment: Mapping[str, Sequence[int]],
) -> dict[int, int]:
    """Return the bytes of each GPU that no engine takes; the thinker keeps one context of KV."""
    shares = build_shares(sizes, constraints, thinker, demands, assignment)
    free = compute_free_bytes(shares, inventory.gpus)
    for gpu in set(thinker) & free.keys():
        free[gpu] -= compute_token_bytes(sizes, len(thinker)) * sizes.context
    return free


def _rank_gpus(
    inventory: GpuInventory,
    thinker: Sequence[int],
    assignment: Mapping[str, Sequence[int]],
    is_packed: bool,
) -> Rank:
    """Return the order of GPUs; see `_spread`."""

    def rank(number: int) -> tuple[int, int, int]:
        num_engines = sum(list(gpus).count(number) for gpus in assignment.values())
        if number in thinker:
            preference = 3 if is_packed else 1
        else:
            preference = 2 if inventory.get_node(number) else 0
        return preference, num_engines, number

    return rank


def find_room(
    demand: Demand, inventory: GpuInventory, free: Mapping[int, int], rank: Rank
) -> Iterator[tuple[int, ...]]:
    """Yield GPUs of one machine that have room for a replica, best first.

    Args:
        demand: What it takes of each of its GPUs.
        inventory: All GPUs.
        free: The free bytes of each.
        rank: Their order.
    """
    roomy = [number for number in inventory.usable if free.get(number, -1) >= demand.total_bytes]
    groups = []
    for node in {inventory.get_node(number) for number in roomy}:
        numbers = sorted((n for n in roomy if inventory.get_node(n) == node), key=rank)
        starts = range(0, len(numbers) - demand.ranks + 1, demand.ranks)
        groups += [tuple(numbers[start : start + demand.ranks]) for start in starts]
    yield from sorted(groups, key=lambda group: rank(group[-1]))
