"""Load a checkpoint into the SGLang model, strictly: fused pairs, experts and routers."""

import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from sglang_omni.models.ming.encoders.loading import WeightFiller
from sglang_omni.models.ming.thinker.routing import ROUTERS
from sglang_omni.models.ming.thinker.stored_forms import PlainForm, StoredForm
from sglang_omni.models.ming.thinker.tensors import is_encoder_tensor, list_thinker_tensors
from sglang_omni.protocol.errors import CheckpointError

logger = logging.getLogger(__name__)

_EXPERT = re.compile(r"^(.*\.experts\.)(\d+)\.(gate|up|down)_proj\.(.+)$")
_SHARED = re.compile(r"^(.*)\.shared_experts\.(gate|up|down)_proj\.(.+)$")
_SHARED_PARAMETER = re.compile(r"^.*\.shared_experts\.gate_up_proj\.")
_ROUTER = re.compile(rf"^(.*\.mlp)\.({'|'.join(ROUTERS)})\.(weight|expert_bias)$")
_GATE_UP = re.compile(r"^(.*)\.(gate|up)_proj\.(.+)$")
_EXPERT_SHARDS = {"gate": ("w13_", "w1"), "up": ("w13_", "w3"), "down": ("w2_", "w2")}


@dataclass(frozen=True)
class Destination:
    """The parameter that a checkpoint tensor fills, fully or in part.

    `shard` names the part of a fused parameter, `expert` the index in a stack of experts, `router`
    the row of the stacked routers.
    """

    parameter: str
    shard: str | int | None = None
    expert: int | None = None
    router: int | None = None


def find_destination(name: str, experts: int, *, stacks_shared: bool = True) -> Destination:
    """Return where the thinker tensor `name` goes in the SGLang model.

    With `stacks_shared` the shared expert follows the `experts` routed ones in their stack;
    otherwise it is an MLP of its own.
    """
    if stacks_shared and (match := _SHARED.match(name)):
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
    if match := _GATE_UP.match(name):
        stem, part, kind = match.groups()
        return Destination(f"{stem}.gate_up_proj.{kind}", 0 if part == "gate" else 1)
    return Destination(name)


def load_thinker(
    model: nn.Module,
    config: Any,
    weights: Iterable[tuple[str, Tensor]],
    encoders: Sequence[WeightFiller] = (),
    form: StoredForm | None = None,
) -> None:
    """Fill the parameters of the model, and those of its `encoders`, from (name, tensor) pairs.

    `form` is how the checkpoint stores the thinker's tensors; None is as they are. Encoder tensors
    that no encoder accepts are skipped and counted in the log. With expert parallelism every tensor
    must be there, and a rank keeps those of its own experts.

    Raises:
        CheckpointError: A tensor is missing (thus also half of a fused pair), unknown, or has the
            wrong shape.
    """
    form = form or PlainForm()
    expected = form.list_stored(list_thinker_tensors(config))
    parameters = dict(model.named_parameters())
    # With expert parallelism, the stack has only routed experts.
    stacks_shared = not any(map(_SHARED_PARAMETER.match, parameters))
    seen: set[str] = set()
    skipped: list[str] = []
    num_bytes = 0
    for name, tensor in weights:
        if is_encoder_tensor(name):
            matching = [encoder for encoder in encoders if encoder.accepts(name)]
            for encoder in matching:
                encoder.fill(name, tensor)
            if not matching:
                skipped.append(name)
            continue
        _check_tensor(name, tensor, expected, form.hint)
        seen.add(name)
        num_bytes += tensor.nbytes
        if (converted := form.convert(name, tensor)) is None:
            continue
        target = find_destination(converted[0], config.num_experts, stacks_shared=stacks_shared)
        _fill_parameter(parameters, target, converted[1])
    missing = sorted(expected.keys() - seen)
    if missing:
        raise CheckpointError(f"tensor {missing[0]!r} is missing ({len(missing)} missing in total)")
    for encoder in encoders:
        skipped += encoder.finish().ignored
    logger.info("thinker: read %.3f GB of weights", num_bytes / 1e9)
    _log_skipped(skipped)


def _check_tensor(
    name: str, tensor: Tensor, expected: dict[str, tuple[int, ...]], hint: str
) -> None:
    if name not in expected:
        raise CheckpointError(f"unexpected tensor {name!r}: it is not part of the thinker{hint}")
    if tuple(tensor.shape) != expected[name]:
        raise CheckpointError(
            f"tensor {name!r} has shape {list(tensor.shape)}; expected {list(expected[name])}"
        )


def _fill_parameter(
    parameters: dict[str, nn.Parameter], target: Destination, tensor: Tensor
) -> None:
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


def _log_skipped(skipped: list[str]) -> None:
    """Log how many tensors were skipped, one line per encoder."""
    groups: dict[str, int] = {}
    for name in skipped:
        group = name.removeprefix("model.").split(".", 1)[0]
        groups[group] = groups.get(group, 0) + 1
    for group, count in sorted(groups.items()):
        logger.info("thinker: skipped %d tensors of %s", count, group)
