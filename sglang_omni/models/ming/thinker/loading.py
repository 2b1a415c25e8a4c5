"""Load the checkpoint into the SGLang model: fused pairs, experts and routers, strictly."""

import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from sglang_omni.models.ming.encoders.loading import WeightFiller
from sglang_omni.models.ming.thinker.fp8_layout import with_scales
from sglang_omni.models.ming.thinker.routing import ROUTERS
from sglang_omni.models.ming.thinker.tensors import is_encoder_tensor, thinker_tensors
from sglang_omni.protocol.errors import CheckpointError

logger = logging.getLogger(__name__)

_EXPERT = re.compile(r"^(.*\.experts\.)(\d+)\.(gate|up|down)_proj\.(.+)$")
_SHARED = re.compile(r"^(.*)\.shared_experts\.(gate|up|down)_proj\.(.+)$")
_ROUTER = re.compile(rf"^(.*\.mlp)\.({'|'.join(ROUTERS)})\.(weight|expert_bias)$")
_PAIR = re.compile(r"^(.*)\.(gate|up)_proj\.(.+)$")
_EXPERT_SHARDS = {"gate": ("w13_", "w1"), "up": ("w13_", "w3"), "down": ("w2_", "w2")}


@dataclass(frozen=True)
class Destination:
    """The parameter that a checkpoint tensor fills, wholly or in part.

    `shard` names the part of a fused parameter, `expert` the expert of a stack, `router` the row
    of the stacked routers.
    """

    parameter: str
    shard: str | int | None = None
    expert: int | None = None
    router: int | None = None


def destination(name: str, experts: int) -> Destination:
    """Where the thinker tensor `name` goes in the SGLang model.

    The shared expert follows the `experts` routed ones in their stack.
    """
    if match := _SHARED.match(name):
        stem, part, kind = match.groups()
        fused, shard = _EXPERT_SHARDS[part]
        return Destination(f"{stem}.experts.{fused}{kind}", shard, experts)
    if match := _EXPERT.match(name):
        stem, expert, part, kind = match.groups()
        fused, shard = _EXPERT_SHARDS[part]
        return Destination(f"{stem}{fused}{kind}", shard, int(expert))
    if match := _ROUTER.match(name):
        stem, router, kind = match.groups()
        return Destination(f"{stem}.router.{kind}", router=ROUTERS.index(router))
    if match := _PAIR.match(name):
        stem, part, kind = match.groups()
        return Destination(f"{stem}.gate_up_proj.{kind}", 0 if part == "gate" else 1)
    return Destination(name)


def load_thinker(
    model: nn.Module,
    config: Any,
    weights: Iterable[tuple[str, Tensor]],
    encoders: Sequence[WeightFiller] = (),
    fp8: bool = False,
) -> None:
    """Fill the model's parameters, and those of its `encoders`, from (name, tensor) pairs.

    With `fp8` they are those of a checkpoint in eight bits (`thinker.fp8_layout`). Raises
    `CheckpointError` for a missing tensor (so for half of a fused pair too), a wrong shape or an
    unknown tensor. Encoder tensors that no encoder wants are skipped and counted in the log.
    """
    expected = thinker_tensors(config)
    if fp8:
        expected = with_scales(expected)
    parameters = dict(model.named_parameters())
    seen: set[str] = set()
    skipped: list[str] = []
    for name, tensor in weights:
        if is_encoder_tensor(name):
            takers = [encoder for encoder in encoders if encoder.wants(name)]
            for taker in takers:
                taker.fill(name, tensor)
            if not takers:
                skipped.append(name)
            continue
        _check(name, tensor, expected)
        _fill(parameters, destination(name, config.num_experts), tensor)
        seen.add(name)
    missing = sorted(expected.keys() - seen)
    if missing:
        raise CheckpointError(f"tensor {missing[0]!r} is missing ({len(missing)} in all)")
    for encoder in encoders:
        skipped += encoder.finish().ignored
    _report(skipped)


def _check(name: str, tensor: Tensor, expected: dict[str, tuple[int, ...]]) -> None:
    if name not in expected:
        raise CheckpointError(f"tensor {name!r} is not part of the thinker")
    if tuple(tensor.shape) != expected[name]:
        raise CheckpointError(
            f"tensor {name!r} has shape {list(tensor.shape)}, not {list(expected[name])}"
        )


def _fill(parameters: dict[str, nn.Parameter], target: Destination, tensor: Tensor) -> None:
    parameter = parameters[target.parameter]
    loader = getattr(parameter, "weight_loader", None)
    if loader is None:
        rows = parameter.data if target.router is None else parameter.data[target.router]
        rows.copy_(tensor)
    elif target.expert is not None:
        loader(parameter, tensor, target.parameter, shard_id=target.shard, expert_id=target.expert)
    elif target.shard is not None:
        loader(parameter, tensor, target.shard)
    else:
        loader(parameter, tensor)


def _report(skipped: list[str]) -> None:
    """List what was left out, one line for each encoder."""
    groups: dict[str, int] = {}
    for name in skipped:
        group = name.removeprefix("model.").split(".", 1)[0]
        groups[group] = groups.get(group, 0) + 1
    for group, count in sorted(groups.items()):
        logger.info("thinker: left out %d tensors of %s", count, group)
