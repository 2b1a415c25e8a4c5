"""Apply a placement to a configuration, and say it; or refuse, with what would fit."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sglang_omni.config.options import Config
from sglang_omni.engines.runtime.gpus import Gpu
from sglang_omni.placement.plan import USABLE, Given, Plan, make_plan, nearest
from sglang_omni.placement.sizes import Sizes
from sglang_omni.protocol.errors import StartupError
from sglang_omni.serving.engine_config import get_thinker_tp_size

GB = 1e9


def place(config: Config, sizes: Sizes, cards: Sequence[Gpu]) -> tuple[Config, Plan]:
    """The configuration with every engine on a card, and the plan behind it.

    Raises `StartupError`, naming the nearest plan that fits, when none does around what is given,
    and `ConfigError` when what is given contradicts itself.
    """
    get_thinker_tp_size(config.thinker)
    given = given_by(config)
    plan = make_plan(sizes, cards, given)
    if plan is None:
        raise StartupError(refusal(sizes, cards, given, config.model_path))
    return apply(config, plan), plan


def given_by(config: Config) -> Given:
    """What a configuration fixes."""
    return Given(
        tp_size=config.thinker.tp_size or len(config.thinker.gpus) or None,
        thinker=config.thinker.gpus,
        talker=config.talker.gpus,
        image_encoder=config.image_encoder.gpus,
        image_encoder_ranks=config.image_encoder.tp_size,
        audio_encoder=config.audio_encoder.gpus,
        encoders=not config.text_only,
    )


def apply(config: Config, plan: Plan) -> Config:
    """The configuration that carries a plan out. A memory budget that was given stays."""
    thinker = replace(config.thinker, tp_size=len(plan.thinker), gpus=plan.thinker)
    if thinker.mem_fraction_static is None:
        thinker = replace(
            thinker,
            mem_fraction_static=plan.mem_fraction_static,
            max_total_tokens=thinker.max_total_tokens or plan.kv_tokens,
        )
    config = replace(config, thinker=thinker, talker=replace(config.talker, gpus=plan.talker))
    if not plan.audio_encoder:
        return config
    return replace(
        config,
        image_encoder=replace(config.image_encoder, gpus=plan.image_encoder),
        audio_encoder=replace(config.audio_encoder, gpus=plan.audio_encoder),
    )


def check_room(config: Config, sizes: Sizes, cards: Sequence[Gpu]) -> None:
    """Refuse a placement by hand whose thinker cannot even hold its weights. Raises
    `StartupError`."""
    ranks = get_thinker_tp_size(config.thinker)
    used = config.thinker.gpus or tuple(range(ranks))
    rooms = [card.total_bytes * USABLE for card in cards if card.index in used]
    # Without a driver's word there is nothing to compare with; SGLang will say what it finds.
    if rooms and sizes.thinker / ranks > min(rooms):
        raise StartupError(refusal(sizes, cards, given_by(config), config.model_path))


def table(plan: Plan, cards: Sequence[Gpu]) -> str:
    """The plan for people: a line for each part on each card, and what is left of it."""
    kind = "FP8 in blocks" if plan.fp8 else "bfloat16"
    lines = [f"placement: thinker in {kind} on {len(plan.thinker)} rank(s); in GB"]
    lines.append(f"  {'card':24} {'part':14} {'weights':>8} {'working':>8}")
    for card in cards:
        shares = [share for share in plan.shares if share.card == card.index]
        label = f"{card.index}: {card.name} ({card.total_bytes / GB:.0f})"
        for share in shares:
            sizes = f"{share.weights / GB:8.1f} {share.working / GB:8.1f}"
            lines.append(f"  {label:24} {share.part:14} {sizes}")
            label = ""
    lines.append(f"  the thinker's KV cache holds {plan.kv_tokens:,} tokens")
    return "\n".join(lines)


def refusal(sizes: Sizes, cards: Sequence[Gpu], given: Given, checkpoint: Path | None) -> str:
    """Why nothing fits, and what would."""
    kind = "FP8" if sizes.fp8 else "bfloat16"
    found = ", ".join(f"{card.name} of {card.total_bytes / GB:.0f} GB" for card in cards) or "none"
    lines = [
        f"the model does not fit: its thinker takes {sizes.thinker / GB:.0f} GB in {kind}, talker "
        f"and encoders {(sizes.talker + sizes.image_encoder + sizes.audio_encoder) / GB:.0f} GB, "
        f"all of them working memory besides; cards found: {found}"
    ]
    quantised, larger = nearest(sizes, cards, given) if cards else (None, None)
    if quantised is not None:
        lines.append(
            f"it fits on {_where(quantised)} in FP8: sgl-omni quantize {checkpoint} "
            f"{checkpoint}-fp8 --fp8"
        )
    if larger is not None:
        count = 1 + max(share.card for share in larger.shares)
        lines.append(f"in {kind} it needs {count} such card(s): {_where(larger)}")
    return "\n".join(lines)


def _where(plan: Plan) -> str:
    cards = sorted({share.card for share in plan.shares})
    ranks = ", ".join(map(str, plan.thinker))
    return f"card(s) {', '.join(map(str, cards))} with the thinker on {ranks}"
