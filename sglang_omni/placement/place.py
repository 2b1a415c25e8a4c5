"""Apply a placement to a configuration, or report why the model does not fit and what would."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sglang_omni.config.config_errors import make_option_error
from sglang_omni.config.engine_options import ThinkerOptions
from sglang_omni.config.tree import Config
from sglang_omni.engines.runtime.gpus import Gpu
from sglang_omni.models.sizes import CheckpointSizes
from sglang_omni.placement.plan import (
    USABLE_FRACTION,
    PlacementConstraints,
    PlacementPlan,
    find_nearest,
    make_plan,
)
from sglang_omni.protocol.errors import StartupError

GB = 1e9


def get_thinker_tp_size(options: ThinkerOptions) -> int:
    """Return the number of the thinker's ranks: as set, or one for each of its GPUs, or one.

    Raises:
        ConfigError: The two disagree.
    """
    ranks = options.tp_size or len(options.gpus) or 1
    if options.gpus and len(set(options.gpus)) != ranks:
        raise make_option_error(
            "thinker.gpus",
            f"thinker.gpus must name {ranks} different GPUs, one for each rank, "
            f"not {', '.join(map(str, options.gpus))}",
        )
    return ranks


def place_engines(
    config: Config, sizes: CheckpointSizes, gpus: Sequence[Gpu]
) -> tuple[Config, PlacementPlan]:
    """Return the configuration with every engine on a GPU, and the plan that it follows.

    Where only the image engine has no room, and images are not required, there is none.

    Raises:
        StartupError: No plan fits the constraints. The message has the nearest plans that fit.
        ConfigError: The configuration contradicts itself.
    """
    get_thinker_tp_size(config.thinker)
    constraints = get_constraints(config)
    plan = make_plan(sizes, gpus, constraints)
    if plan is None and config.image.enabled == "auto":
        plan = make_plan(sizes, gpus, replace(constraints, has_images=False))
        config = replace(config, image=replace(config.image, enabled="never"))
    if plan is None:
        raise StartupError(explain_misfit(sizes, gpus, constraints, config.model_path))
    return apply_plan(config, plan), plan


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
    )


def _may_draw_on_gpu(config: Config) -> bool:
    """Return whether an image engine uses a GPU, if the checkpoint draws images."""
    options = config.image
    wants_images = options.enabled == "always" or (
        options.enabled == "auto" and not config.text_only
    )
    return wants_images and options.device != "cpu"


def apply_plan(config: Config, plan: PlacementPlan) -> Config:
    """Return the configuration that implements a plan. A configured memory fraction is kept."""
    thinker = replace(config.thinker, tp_size=len(plan.thinker), gpus=plan.thinker)
    if thinker.mem_fraction_static is None:
        thinker = replace(
            thinker,
            mem_fraction_static=plan.mem_fraction_static,
            max_total_tokens=thinker.max_total_tokens or plan.kv_tokens,
        )
    config = replace(config, thinker=thinker, talker=replace(config.talker, gpus=plan.talker))
    if plan.image:
        config = replace(config, image=replace(config.image, gpus=plan.image))
    if not plan.audio_encoder:
        return config
    return replace(
        config,
        image_encoder=replace(config.image_encoder, gpus=plan.image_encoder),
        audio_encoder=replace(config.audio_encoder, gpus=plan.audio_encoder),
    )


def check_thinker_fits(config: Config, sizes: CheckpointSizes, gpus: Sequence[Gpu]) -> None:
    """Raise `StartupError` for a manual placement whose GPUs cannot hold the thinker's weights."""
    ranks = get_thinker_tp_size(config.thinker)
    indices = config.thinker.gpus or tuple(range(ranks))
    usable_bytes = [gpu.total_bytes * USABLE_FRACTION for gpu in gpus if gpu.index in indices]
    # Without a driver the sizes of the GPUs are unknown, and SGLang reports what is wrong.
    if usable_bytes and sizes.thinker / ranks > min(usable_bytes):
        raise StartupError(explain_misfit(sizes, gpus, get_constraints(config), config.model_path))


def format_plan(plan: PlacementPlan, gpus: Sequence[Gpu]) -> str:
    """Format a plan as a table, with a line for each part on each GPU."""
    lines = [f"placement: thinker in {plan.dtype} on {len(plan.thinker)} rank(s); in GB"]
    lines.append(f"  {'GPU':24} {'part':14} {'weights':>8} {'working':>8}")
    for gpu in gpus:
        shares = [share for share in plan.shares if share.gpu == gpu.index]
        label = f"{gpu.index}: {gpu.name} ({gpu.total_bytes / GB:.0f})"
        for share in shares:
            sizes = f"{share.weight_bytes / GB:8.1f} {share.working_bytes / GB:8.1f}"
            lines.append(f"  {label:24} {share.part:14} {sizes}")
            label = ""
    lines.append(f"  the thinker's KV cache holds {plan.kv_tokens:,} tokens")
    if plan.unplaced_image_bytes:
        lines.append(
            f"  no images are drawn: the image engine's {plan.unplaced_image_bytes / GB:.1f} GB of "
            "weights do not fit beside the other engines"
        )
    return "\n".join(lines)


def explain_misfit(
    sizes: CheckpointSizes,
    gpus: Sequence[Gpu],
    constraints: PlacementConstraints,
    checkpoint: Path | None,
) -> str:
    """Return a message with why no plan fits, and which would."""
    dtype = sizes.dtype
    found = ", ".join(f"{gpu.name} of {gpu.total_bytes / GB:.0f} GB" for gpu in gpus) or "none"
    lines = [
        f"the model does not fit: its thinker takes {sizes.thinker / GB:.0f} GB in {dtype}, talker "
        f"and encoders {(sizes.talker + sizes.image_encoder + sizes.audio_encoder) / GB:.0f} GB, "
        f"plus working memory for each; GPUs found: {found}"
    ]
    if constraints.has_images and sizes.image:
        lines.append(
            f"its image engine takes another {sizes.image / GB:.0f} GB, which --image.enabled "
            "never saves"
        )
    quantized, larger = find_nearest(sizes, gpus, constraints) if gpus else (None, None)
    if quantized is not None:
        lines.append(
            f"it fits on {_describe_gpus(quantized)} in FP8: sgl-omni quantize {checkpoint} "
            f"{checkpoint}-fp8 --fp8"
        )
    if larger is not None:
        count = 1 + max(share.gpu for share in larger.shares)
        lines.append(f"in {dtype} it needs {count} such GPU(s): {_describe_gpus(larger)}")
    return "\n".join(lines)


def _describe_gpus(plan: PlacementPlan) -> str:
    gpus = sorted({share.gpu for share in plan.shares})
    ranks = ", ".join(map(str, plan.thinker))
    return f"GPU(s) {', '.join(map(str, gpus))} with the thinker on {ranks}"
