"""Apply a placement to a configuration, or report why the model does not fit and what would."""

from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from sglang_omni.config.config_errors import make_option_error
from sglang_omni.config.engine_options import (
    AudioEncoderOptions,
    ImageEncoderOptions,
    TalkerOptions,
    ThinkerOptions,
)
from sglang_omni.config.image_options import ImageOptions
from sglang_omni.config.tree import Config
from sglang_omni.engines.runtime.gpus import Gpu
from sglang_omni.engines.thinker.kv_cache import FP8, MIN_FP8_CAPABILITY
from sglang_omni.models.sizes import FOUR_BITS, CheckpointSizes
from sglang_omni.placement.cluster_plan import make_cluster_plan
from sglang_omni.placement.gpu_inventory import GpuInventory
from sglang_omni.placement.limits import iter_smaller_limits, read_limits
from sglang_omni.placement.named_places import check_room, number_places, read_places
from sglang_omni.placement.plan import (
    GpuShare,
    NearestPlans,
    PlacementConstraints,
    PlacementPlan,
    find_nearest,
    get_usable_bytes,
)
from sglang_omni.placement.reserves import compute_reserves
from sglang_omni.protocol.errors import StartupError

GB = 1e9
COMFORTABLE_KV_TOKENS, COMFORTABLE_REQUEST_TOKENS = 75_000, 256
"""Tokens of the KV cache below which a plan takes smaller limits: of all requests (64 conversations
of 1,170 tokens each), and of each request that SGLang would run by default."""
MovableOptions = TypeVar(
    "MovableOptions", TalkerOptions, ImageEncoderOptions, AudioEncoderOptions, ImageOptions
)


def get_thinker_tp_size(options: ThinkerOptions) -> int:
    """Return the number of the thinker's ranks: as set, or one for each GPU of each machine.

    Raises:
        ConfigError: The options disagree.
    """
    nodes = options.nodes
    ranks = options.tp_size or max(1, len(options.gpus)) * nodes
    if options.gpus and len(set(options.gpus)) * nodes != ranks:
        of_each = f" of each of {nodes} machines" if nodes > 1 else ""
        raise make_option_error(
            "thinker.gpus",
            f"thinker.gpus must name {ranks // nodes} different GPUs{of_each}, one for each rank, "
            f"not {', '.join(map(str, options.gpus))}",
        )
    if ranks % nodes:
        raise make_option_error(
            "thinker.nodes", f"thinker.nodes ({nodes}) must divide thinker.tp_size ({ranks})"
        )
    return ranks


def place_engines(
    config: Config, sizes: CheckpointSizes, inventory: GpuInventory
) -> tuple[Config, PlacementPlan]:
    """Return the configuration with every engine on a GPU, and the plan that it follows.

    Where engines leave little room for the KV cache, they get smaller limits, unless options set
    them. Where only the image engine has no room, and images are not required, there is none.

    Raises:
        StartupError: No plan fits the constraints. The message has the nearest plans that fit.
        ConfigError: The configuration contradicts itself.
    """
    get_thinker_tp_size(config.thinker)
    if config.thinker.nodes > 1:
        raise make_option_error(
            "placement",
            "placement auto plans a thinker on one machine; set thinker.gpus with thinker.nodes",
        )
    planned = _place_with_limits(config, sizes, inventory)
    if planned is None and config.image.enabled == "auto" and not config.image.place:
        without = replace(config, image=replace(config.image, enabled="never"))
        planned = _place_with_limits(without, sizes, inventory)
    if planned is None:
        constraints = get_constraints(_get_smallest(config))
        raise StartupError(
            explain_misfit(_get_served(config, sizes), inventory, constraints, config.model_path)
        )
    return planned


def _place_with_limits(
    config: Config, sizes: CheckpointSizes, inventory: GpuInventory
) -> tuple[Config, PlacementPlan] | None:
    """Return the first placement with a comfortable KV cache, or else the one with the largest.

    None means that none fits even with the smallest limits.
    """
    served, best = _get_served(config, sizes), None
    # A place that is too small for every plan is an error, which names those that fit.
    smallest = get_constraints(_get_smallest(config))
    named = _add_places(config, served, inventory, smallest)
    for reduced, taken in iter_smaller_limits(config):
        constraints = replace(named, limits=read_limits(reduced))
        plan = make_cluster_plan(served, inventory, constraints)
        if plan is None:
            continue
        plan = replace(plan, smaller_limits=tuple(taken.items()))
        if best is None or plan.kv_tokens > best[1].kv_tokens:
            best = apply_plan(reduced, plan, inventory), plan
        # Compared in bytes, whatever the elements are: FP8 is for more tokens.
        if plan.kv_tokens * served.kv_bytes >= _get_comfortable_tokens(reduced) * sizes.kv_bytes:
            break
    return best


def _get_comfortable_tokens(config: Config) -> int:
    """Return the tokens in the dtype of the model with which a plan is content."""
    if config.thinker.max_running_requests is not None:
        return COMFORTABLE_KV_TOKENS
    running_requests = read_limits(config).running_requests
    return max(COMFORTABLE_KV_TOKENS, COMFORTABLE_REQUEST_TOKENS * running_requests)


def _get_smallest(config: Config) -> Config:
    """Return the configuration with the smallest limits."""
    *_, (smallest, _) = iter_smaller_limits(config)
    return smallest


def _get_served(config: Config, sizes: CheckpointSizes) -> CheckpointSizes:
    """Return the sizes with the KV cache that the configuration chooses."""
    return sizes.with_kv_cache(config.thinker.kv_cache_dtype)


def check_kv_cache_gpus(config: Config, inventory: GpuInventory) -> None:
    """Check that the thinker's GPUs convert to and from the type of its KV cache.

    Raises:
        ConfigError: They do not.
    """
    if config.thinker.kv_cache_dtype != FP8:
        return
    for gpu in inventory.local:
        is_used = not config.thinker.gpus or gpu.index in config.thinker.gpus
        if is_used and gpu.capability is not None and gpu.capability < MIN_FP8_CAPABILITY:
            found, needed = (
                ".".join(map(str, version)) for version in (gpu.capability, MIN_FP8_CAPABILITY)
            )
            raise make_option_error(
                "thinker.kv_cache_dtype",
                f"thinker.kv_cache_dtype {FP8} needs GPUs of compute capability {needed} or more; "
                f"{gpu.name} has {found}",
            )


def _add_places(
    config: Config,
    sizes: CheckpointSizes,
    inventory: GpuInventory,
    constraints: PlacementConstraints,
) -> PlacementConstraints:
    """Return the constraints with the GPUs that the options `place` name.

    Raises:
        StartupError: One of them does not exist, or is too small.
    """
    places, thinker = read_places(config, "cuda"), constraints.thinker
    assignment = number_places(places, inventory, sizes, constraints, thinker)
    check_room(places, inventory, sizes, constraints, thinker, assignment)
    return replace(
        constraints,
        talker=assignment.get("talker", ()),
        image_encoder=assignment.get("image encoder", ()),
        audio_encoder=assignment.get("audio encoder", ()),
        image=assignment.get("image", ()),
    )


def check_manual_placement(
    config: Config, sizes: CheckpointSizes, inventory: GpuInventory
) -> tuple[GpuShare, ...]:
    """Check a placement by hand, and return what every engine takes of its GPUs.

    Only GPUs that options `place` name are checked for room.

    Raises:
        StartupError: A place does not exist or is too small. The message has the nearest that fit.
    """
    nodes = config.thinker.nodes
    # Further machines hold their share of the thinker.
    sizes = replace(sizes, matrices=sizes.matrices // nodes, rest=sizes.rest // nodes)
    constraints = _add_defaults(config, get_constraints(config))
    places, thinker = read_places(config, "cuda"), constraints.thinker
    assignment = number_places(places, inventory, sizes, constraints, thinker)
    return check_room(places, inventory, sizes, constraints, thinker, assignment)


def _add_defaults(config: Config, constraints: PlacementConstraints) -> PlacementConstraints:
    """Return the constraints with the GPUs that engines use if no option names one."""
    is_drawing = bool(config.image.gpus or config.image.place) or config.image.enabled == "always"
    local_ranks = get_thinker_tp_size(config.thinker) // config.thinker.nodes
    return replace(
        constraints,
        thinker=constraints.thinker or tuple(range(local_ranks)),
        talker=constraints.talker or (0,),
        image_encoder=constraints.image_encoder or tuple(range(constraints.image_encoder_ranks)),
        audio_encoder=constraints.audio_encoder or (0,),
        image=constraints.image or (0,),
        has_images=constraints.has_images and is_drawing,
    )


def get_constraints(config: Config) -> PlacementConstraints:
    """Return the placement that a configuration fixes."""
    return PlacementConstraints(
        tp_size=config.thinker.tp_size or len(config.thinker.gpus) or None,
        thinker=config.thinker.gpus,
        talker=config.talker.gpus,
        image_encoder=config.image_encoder.gpus,
        image_encoder_ranks=config.image_encoder.tp_size,
        audio_encoder=config.audio_encoder.gpus,
        has_encoders=not config.text_only,
        image=config.image.gpus,
        has_images=_may_draw_on_gpu(config),
        limits=read_limits(config),
    )


def _may_draw_on_gpu(config: Config) -> bool:
    """Return whether an image engine uses a GPU, if the checkpoint draws images."""
    options = config.image
    wants_images = options.enabled == "always" or (
        options.enabled == "auto" and not config.text_only
    )
    return wants_images and options.device != "cpu"


def apply_plan(config: Config, plan: PlacementPlan, inventory: GpuInventory) -> Config:
    """Return the configuration that implements a plan. A configured memory fraction is kept."""
    thinker = replace(config.thinker, tp_size=len(plan.thinker), gpus=plan.thinker)
    if thinker.mem_fraction_static is None:
        thinker = replace(
            thinker,
            mem_fraction_static=plan.mem_fraction_static,
            max_total_tokens=thinker.max_total_tokens or plan.kv_tokens,
        )
    return replace(
        config,
        thinker=thinker,
        talker=_assign(config.talker, plan.talker, inventory),
        image_encoder=_assign(config.image_encoder, plan.image_encoder, inventory),
        audio_encoder=_assign(config.audio_encoder, plan.audio_encoder, inventory),
        image=_assign(config.image, plan.image, inventory),
    )


def _assign(
    options: MovableOptions, numbers: tuple[int, ...], inventory: GpuInventory
) -> MovableOptions:
    """Return the options of an engine on these GPUs; places that the user set are kept."""
    if options.place or not numbers:
        return options
    if not any(map(inventory.get_node, numbers)):
        return replace(options, gpus=numbers)
    return replace(options, gpus=(), place=tuple(map(inventory.format_place, numbers)))


def check_thinker_fits(config: Config, sizes: CheckpointSizes, inventory: GpuInventory) -> None:
    """Raise `StartupError` for a manual placement whose GPUs cannot hold the thinker's weights."""
    ranks = get_thinker_tp_size(config.thinker)
    indices = config.thinker.gpus or tuple(range(ranks // config.thinker.nodes))
    usable_bytes = [get_usable_bytes(gpu) for gpu in inventory.local if gpu.index in indices]
    # Without a driver the sizes of the GPUs are unknown, and SGLang reports what is wrong.
    if usable_bytes and sizes.thinker / ranks > min(usable_bytes):
        constraints = get_constraints(_get_smallest(config))
        raise StartupError(explain_misfit(sizes, inventory, constraints, config.model_path))


def explain_misfit(
    sizes: CheckpointSizes,
    inventory: GpuInventory,
    constraints: PlacementConstraints,
    checkpoint: Path | None,
) -> str:
    """Return a message with why no plan fits, and which would."""
    dtype, gpus = sizes.dtype, inventory.local
    found = ", ".join(_describe_gpu(gpu) for gpu in gpus) or "none"
    lines = [
        f"the model does not fit: its thinker takes {sizes.thinker / GB:.0f} GB in {dtype}, talker "
        f"and encoders {(sizes.talker + sizes.image_encoder + sizes.audio_encoder) / GB:.0f} GB, "
        f"plus working memory for each; GPUs found: {found}"
    ]
    lines += [
        f"on {report.name}: {', '.join(map(_describe_gpu, report.gpus)) or 'no GPU'}"
        + (f" ({report.problem})" if report.problem else "")
        for report in inventory.reports
        if not report.is_server
    ]
    if constraints.has_images and sizes.image:
        working = compute_reserves(sizes, constraints.limits).image
        lines.append(
            f"its image engine takes another {sizes.image / GB:.0f} GB of weights and "
            f"{working / GB:.0f} GB of working memory, which --image.enabled never saves"
        )
    nearest = find_nearest(sizes, gpus, constraints) if gpus else NearestPlans()
    lines += [_suggest_form(sizes, plan, checkpoint) for plan in nearest.quantized]
    if nearest.larger is not None:
        count = 1 + max(share.gpu for share in nearest.larger.shares)
        lines.append(f"in {dtype} it needs {count} such GPU(s): {_describe_gpus(nearest.larger)}")
    return "\n".join(lines)


def _suggest_form(sizes: CheckpointSizes, plan: PlacementPlan, checkpoint: Path | None) -> str:
    """Return how to make the form of the checkpoint that a plan needs."""
    suffix = "int4" if plan.dtype == FOUR_BITS else "fp8"
    command = f"sgl-omni quantize {checkpoint} {checkpoint}-{suffix} --{suffix}"
    if sizes.is_quantized:
        command = f"sgl-omni quantize SRC DST --{suffix}, with its bfloat16 original as SRC"
    return f"it fits on {_describe_gpus(plan)} in {plan.dtype}: {command}"


def _describe_gpu(gpu: Gpu) -> str:
    return f"{gpu.name} of {gpu.total_bytes / GB:.0f} GB"


def _describe_gpus(plan: PlacementPlan) -> str:
    gpus = sorted({share.gpu for share in plan.shares})
    ranks = ", ".join(map(str, plan.thinker))
    return f"GPU(s) {', '.join(map(str, gpus))} with the thinker on {ranks}"
