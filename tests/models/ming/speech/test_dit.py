"""The DiT flow model and the aggregator against the reference."""

import pytest
import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from sglang_omni.models.ming.speech.talker import Talker
from tests.testing.golden import cases, load_case


def record(module: nn.Module, store: dict[str, torch.Tensor], name: str) -> RemovableHandle:
    return module.register_forward_hook(lambda _m, _args, out: store.__setitem__(name, out))


@pytest.mark.parametrize("name", cases("talker", "dit"))
def test_flow_model_matches_the_reference(talker: Talker, name: str) -> None:
    case = load_case(name)
    seen: dict[str, torch.Tensor] = {}
    model = talker.cfm.model
    hooks = [
        record(model.blocks[0], seen, "block0_out"),
        record(model.t_embedder, seen, "time_embedding"),
        model.blocks[0].register_forward_pre_hook(
            lambda _m, args: seen.__setitem__("tokens_in", args[0])
        ),
    ]
    pair = torch.cat((case["cond"], torch.zeros_like(case["cond"])))
    x, past = (case[key].expand(2, -1, -1) for key in ("x", "history"))
    with torch.inference_mode():
        v, v_null = model(x, case["t"].expand(2), pair, past)
    for hook in hooks:
        hook.remove()
    case.check("v_cond", v)
    case.check("v_null", v_null)
    case.check("v_cfg2", v + (v - v_null) * 2)
    case.check("time_embedding", seen["time_embedding"][0])
    case.check("tokens_in", seen["tokens_in"])
    case.check("block0_out", seen["block0_out"])


def test_aggregator_matches_the_reference(talker: Talker) -> None:
    case = load_case("talker/aggregator")
    with torch.inference_mode():
        case.check("embeds", talker.aggregator(case["patches"]))
