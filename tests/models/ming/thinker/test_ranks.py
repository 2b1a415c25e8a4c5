"""The plug-in refuses to be split in ways that it does not support, on the stock server too."""

from types import SimpleNamespace
from typing import Any

import pytest

from sglang_omni.protocol.errors import StartupError

NEUTRAL: dict[str, Any] = {
    "pp_size": 1,
    "enable_dp_attention": False,
    "moe_a2a_backend": "none",
    "moe_dense_tp_size": None,
    "moe_dp_size": 1,
    "attn_cp_size": 1,
    "dcp_size": 1,
    "enable_eplb": False,
    "ep_num_redundant_experts": 0,
    "init_expert_location": "trivial",
}


def check(monkeypatch: pytest.MonkeyPatch, ep_size: int = 1, **changed: Any) -> None:
    from sglang_omni.models.ming.thinker import ranks

    arguments = SimpleNamespace(**NEUTRAL | changed)
    parallel = SimpleNamespace(moe_ep_size=ep_size, tp_rank=0)
    monkeypatch.setattr(ranks, "get_server_args", lambda: arguments)
    monkeypatch.setattr(ranks, "get_parallel", lambda: parallel)
    ranks.check_ranks()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pp_size", 2),
        ("enable_dp_attention", True),
        ("moe_a2a_backend", "deepep"),
        ("moe_dense_tp_size", 1),
        ("moe_dp_size", 2),
        ("attn_cp_size", 2),
        ("dcp_size", 2),
        ("enable_eplb", True),
        ("ep_num_redundant_experts", 2),
        ("init_expert_location", "map.json"),
    ],
)
def test_an_unsupported_split_is_named(
    name: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(StartupError, match="--" + name.replace("_", "-")):
        check(monkeypatch, **{name: value})


def test_the_log_says_which_kernels_are_off(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO"):
        check(monkeypatch)
        assert not caplog.records
        check(monkeypatch, ep_size=2)
    assert "decode steps use SGLang's expert kernels" in caplog.text


def test_the_projects_decode_kernels_are_off_where_ranks_share_experts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import torch

    from sglang_omni.models.ming.thinker import decode_moe
    from sglang_omni.models.ming.thinker.int4.method import Int4ExpertsMethod

    def is_built(ep_size: int) -> bool:
        method = Int4ExpertsMethod.__new__(Int4ExpertsMethod)
        experts: Any = SimpleNamespace(quant_method=method, moe_ep_size=ep_size)
        router: Any = SimpleNamespace(weight=torch.empty(3, 256, 4096, device="meta"))
        return decode_moe.build_decode_experts(router, experts) is not None

    monkeypatch.setattr(decode_moe, "supports_decode_kernels", lambda: True)
    assert is_built(1)
    assert not is_built(2)
