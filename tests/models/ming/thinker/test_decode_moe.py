"""Which layers' experts take our way in a decode step."""

import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

import pytest
import torch

from sglang_omni.engines.thinker.contract import ThinkerSettings
from sglang_omni.engines.thinker.launch import build_environment
from tests.testing.golden import TINY


def is_ours(**changed: bool) -> bool:
    """Whether experts take it that have everything it needs but what is `changed`."""
    from sglang.srt.layers.quantization.fp8 import Fp8MoEMethod

    from sglang_omni.models.ming.thinker import decode_moe as steps

    has = {"hopper": True, "is_fp8": True, "block_quant": True, "triton": True} | changed
    kind = Fp8MoEMethod if has["is_fp8"] else SimpleNamespace
    method = kind.__new__(kind)
    method.block_quant, method.use_mxfp8 = has["block_quant"], False
    backend = SimpleNamespace(is_triton=lambda: has["triton"])
    method.runner = SimpleNamespace(runner_backend=backend)
    router: Any = SimpleNamespace(weight=torch.empty(3, 256, 512 if has.get("even", True) else 500))
    down = torch.empty(257, 512, 256 if has.get("whole", True) else 192)
    experts: Any = SimpleNamespace(quant_method=method, w2_weight=down)
    arguments = SimpleNamespace(enable_deterministic_inference=has.get("deterministic", False))
    with (
        patch.object(steps, "is_sm90_supported", lambda: has["hopper"]),
        patch.object(steps, "get_server_args", lambda: arguments),
    ):
        return steps.build_decode_experts(router, experts) is not None


def check_int4() -> None:
    """Experts in four bits have theirs on any router that the kernels can split."""
    from sglang_omni.models.ming.thinker import decode_moe as steps
    from sglang_omni.models.ming.thinker.int4.experts import Int4DecodeExperts
    from sglang_omni.models.ming.thinker.int4.layout import Int4Format
    from sglang_omni.models.ming.thinker.int4.method import Int4ExpertsMethod

    experts: Any = SimpleNamespace(quant_method=Int4ExpertsMethod(Int4Format()))
    even, uneven = (SimpleNamespace(weight=torch.empty(3, 256, hidden)) for hidden in (512, 500))
    for hopper, router, kind in (
        (True, even, Int4DecodeExperts),
        (True, uneven, type(None)),
        (False, even, type(None)),
    ):
        with patch.object(steps, "supports_decode_kernels", lambda hopper=hopper: hopper):
            built: Any = steps.build_decode_experts(cast(Any, router), experts)
            assert isinstance(built, kind)


def check() -> None:
    """Whatever is missing leaves the experts to SGLang."""
    assert is_ours()
    for name in ("hopper", "is_fp8", "block_quant", "triton", "even", "whole"):
        assert not is_ours(**{name: False}), name
    assert not is_ours(deterministic=True)
    check_int4()


@pytest.mark.extended
def test_our_way_is_taken_where_it_was_measured_and_may_round_otherwise() -> None:
    # SGLang reads its environment at import, so it is imported by a process of its own.
    variables = build_environment(ThinkerSettings(TINY, device="cpu"), threads=1)
    program = "from tests.models.ming.thinker import test_decode_moe as t; t.check(); print('ok')"
    run = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
    )
    assert run.stdout.endswith("ok\n"), run.stderr
