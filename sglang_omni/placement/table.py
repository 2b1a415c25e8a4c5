"""Formats a placement as a table: machine, GPU, part and gigabytes."""

from collections.abc import Iterator, Sequence

from sglang_omni.engines.runtime.gpus import Gpu
from sglang_omni.engines.thinker.kv_cache import FP8
from sglang_omni.placement.gpu_inventory import GpuInventory
from sglang_omni.placement.place_options import THIS_MACHINE
from sglang_omni.placement.plan import GpuShare, PlacementPlan

GB = 1e9
MIN_GPU_WIDTH = 24
# With fewer, a smaller type of their elements is suggested.
MANY_KV_TOKENS = 150_000
# Of a local NVMe disk, in bytes a second.
DISK_RATE = 2 * GB


def format_plan(plan: PlacementPlan, inventory: GpuInventory) -> str:
    """Format a plan as a table, with a line for each part on each GPU."""
    lines = [f"placement: thinker in {plan.dtype} on {len(plan.thinker)} rank(s); in GB"]
    lines += format_shares(plan.shares, inventory)
    lines.append(
        f"  the thinker's KV cache holds {plan.kv_tokens:,} tokens in {plan.kv_dtype}"
        f"{_suggest_kv_dtype(plan)}"
    )
    if plan.smaller_limits:
        taken = ", ".join(f"{option} {value}" for option, value in plan.smaller_limits)
        lines.append(f"  limits smaller than usual, to leave it room: {taken}")
    if plan.unplaced_image_bytes:
        lines.append(
            f"  no images are drawn: the image engine's {plan.unplaced_image_bytes / GB:.1f} GB of "
            "weights do not fit beside the other engines; for images, add a GPU, or use one with "
            "more memory"
        )
    lines.append(f"  {_describe_reading(plan)}")
    return "\n".join([*lines, *format_nodes(inventory)])


def _suggest_kv_dtype(plan: PlacementPlan) -> str:
    """Return how the KV cache could hold more tokens, if it holds few."""
    if plan.kv_tokens >= MANY_KV_TOKENS or plan.kv_dtype == FP8:
        return ""
    return f"; with --thinker.kv_cache_dtype {FP8} it would hold {2 * plan.kv_tokens:,}"


def _describe_reading(plan: PlacementPlan) -> str:
    """Return how many bytes of weights are read at the start, and how long that takes at least."""
    num_bytes = sum(share.weight_bytes for share in plan.shares)
    return (
        f"the start reads {num_bytes / GB:.1f} GB of weights: {num_bytes / DISK_RATE:.0f} s from a "
        f"disk of {DISK_RATE / GB:.0f} GB/s"
    )


def format_shares(shares: Sequence[GpuShare], inventory: GpuInventory) -> Iterator[str]:
    """Yield the lines of the table. Without a cluster it has no column for the machine."""
    names = ["machine", *(node for node, _ in inventory.locations.values())]
    width = max(map(len, names)) + 2 if inventory.reports else 0
    labels = {gpu.index: _format_gpu(gpu, inventory) for gpu in inventory.gpus}
    gpu_width = max(MIN_GPU_WIDTH, *map(len, labels.values())) if labels else MIN_GPU_WIDTH
    head = f"{'GPU':{gpu_width}} {'part':14} {'weights':>8} {'working':>8}"
    yield f"  {'machine'[:width]:{width}}{head}"
    for gpu in inventory.gpus:
        node, _ = inventory.locations[gpu.index]
        machine = f"{(node or THIS_MACHINE)[:width]:{width}}"
        label = labels[gpu.index]
        for share in shares:
            if share.gpu != gpu.index:
                continue
            sizes = f"{share.weight_bytes / GB:8.1f} {share.working_bytes / GB:8.1f}"
            yield f"  {machine}{label:{gpu_width}} {share.part:14} {sizes}"
            machine, label = " " * len(machine), ""


def _format_gpu(gpu: Gpu, inventory: GpuInventory) -> str:
    _, index = inventory.locations[gpu.index]
    return f"{index}: {gpu.name} ({gpu.total_bytes / GB:.0f})"


def format_nodes(inventory: GpuInventory) -> Iterator[str]:
    """Yield the machines of the cluster, and a line for each that cannot run engines."""
    usable = [
        f"{report.name} (this machine)" if report.is_server else report.name
        for report in inventory.reports
        if not report.problem
    ]
    if inventory.reports:
        yield f"  machines of the cluster: {', '.join(usable) or 'none'}"
    for report in inventory.reports:
        if report.problem:
            yield f"  {report.name} is not used: {report.problem}"
