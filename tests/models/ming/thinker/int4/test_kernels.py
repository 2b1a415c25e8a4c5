"""The four-bit expert kernels give what the plain product gives.

They are interpreted here, compiled for a GPU, and run on one.
"""

import os
import subprocess
import sys
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from sglang_omni.models.ming.thinker.int4.tilings import DEFAULT_TILINGS
from sglang_omni.models.ming.thinker.int4.weights import (
    Int4Matrix,
    dequantize_int4,
    quantize_int4,
    stack_int4,
)
from tests.models.ming.thinker.test_kernels import meta
from tests.models.ming.thinker.test_step_kernels import SMALL, group
from tests.testing.compiling import compiled

if TYPE_CHECKING:
    from sglang_omni.models.ming.thinker.int4.experts import Int4Experts

__all__ = ["compiled"]

EXPERTS, TOP_K = 9, 4


def draw_ids(tokens: int) -> Tensor:
    """Routed experts, and the shared one last, as in a step."""
    routed = torch.rand(tokens, EXPERTS - 1).topk(TOP_K - 1).indices
    return torch.cat((routed, torch.full_like(routed[:, :1], EXPERTS - 1)), dim=1).int()


def draw_stack(rows: int, columns: int, symmetric: bool, device: str) -> Int4Matrix:
    """An expert's matrix differs from another's by more than a sign."""
    drawn = [torch.randn(rows, columns) / columns**0.5 for _ in range(EXPERTS)]
    stack = stack_int4([quantize_int4(weight, symmetric, (1.0, 0.8)) for weight in drawn])
    return Int4Matrix(**{name: tensor.to(device) for name, tensor in stack.tensors().items()})


def check_products(
    tokens: int,
    height: int,
    cols: int,
    split: int,
    symmetric: bool,
    device: str,
    warps: int = 4,
    zero_after: bool = False,
) -> None:
    """Each slot is its row times its expert's weight, times its share."""
    from sglang_omni.models.ming.thinker.decode_moe_triton import Grouping
    from sglang_omni.models.ming.thinker.int4.gemm_triton import (
        Int4GemmTile,
        multiply_int4_experts,
    )

    torch.manual_seed(7)
    n, k = 256, 512
    ids = draw_ids(tokens)
    order = group(ids.to(device), Grouping(EXPERTS, height))
    stack = draw_stack(n, k, symmetric, device)
    on_gpu = device == "cuda"
    x = torch.randn(tokens, k, device=device).to(torch.bfloat16 if on_gpu else torch.float32)
    for shares in (None, torch.rand(tokens, TOP_K, device=device)):
        out = torch.full((tokens * TOP_K, split, n), float("nan"), device=device)
        tile = Int4GemmTile(cols, warps, split=split, zero_after=zero_after)
        multiply_int4_experts(x, stack, order, height, out, tile, shares, pdl=on_gpu)
        wanted = torch.stack(
            [
                dequantize_int4(stack[expert]) @ x[slot // TOP_K].float()
                for slot, expert in enumerate(ids.flatten())
            ]
        )
        if shares is not None:
            wanted *= shares.flatten()[:, None]
        torch.testing.assert_close(out.sum(1), wanted, rtol=1e-4, atol=1e-4)


def check_swiglu(rows: int, parts: int, width: int, device: str) -> None:
    """Partial sums are added before the activation, and the result is rounded once."""
    from sglang_omni.models.ming.thinker.int4.swiglu_triton import swiglu_parts

    torch.manual_seed(5)
    gate_up = torch.randn(rows, parts, 2 * width, device=device)
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    gate, up = gate_up.sum(1).chunk(2, dim=-1)
    made = swiglu_parts(gate_up, dtype, pdl=device == "cuda")
    near = 2**-8 if device == "cuda" else 1e-5
    torch.testing.assert_close(made.float(), F.silu(gate) * up, rtol=near, atol=near)


def draw_experts(hidden: int, width: int, symmetric: bool, device: str) -> "Int4Experts":
    from sglang_omni.models.ming.thinker.int4.experts import Int4Experts

    return Int4Experts(
        draw_stack(2 * width, hidden, symmetric, device),
        draw_stack(hidden, width, symmetric, device),
    )


def check_experts(tokens: int, height: int, splits: tuple[int, int], device: str) -> None:
    """A layer's experts are those of the plain form, for any split of the sums."""
    from sglang_omni.models.ming.thinker.decode_moe_triton import Grouping
    from sglang_omni.models.ming.thinker.int4.experts import (
        ExpertChoice,
        compute_int4_parts,
        multiply_plain,
    )
    from sglang_omni.models.ming.thinker.int4.gemm_triton import Int4GemmTile
    from sglang_omni.models.ming.thinker.int4.tilings import Int4Tiling

    torch.manual_seed(6)
    on_gpu, hidden = device == "cuda", 256
    experts = draw_experts(hidden, 256, True, device)
    x = torch.randn(tokens, hidden, device=device).to(torch.bfloat16 if on_gpu else torch.float32)
    choice = ExpertChoice(draw_ids(tokens).to(device), torch.rand(tokens, TOP_K, device=device))
    order = group(choice.ids, Grouping(EXPERTS, height))
    up, down = (Int4GemmTile(split=split) for split in splits)
    tiling = Int4Tiling(height, up, down)
    parts = compute_int4_parts(x, experts, choice, order, tiling, pdl=on_gpu)
    assert parts.shape == (tokens, TOP_K * splits[1], hidden)
    wanted = multiply_plain(x, experts, choice).float()
    near = 2**-6 if on_gpu else 1e-4
    assert (parts.float().sum(1) - wanted).norm() < near * wanted.norm()


def check_choice(tokens: int, device: str) -> None:
    """Experts chosen without rows in eight bits are those chosen with them."""
    from sglang_omni.models.ming.thinker.decode_moe_triton import Grouping
    from sglang_omni.models.ming.thinker.router_triton import route_rows, route_tokens

    torch.manual_seed(3)
    x, weight = torch.randn(tokens, 512, device=device), torch.randn(32, 512, device=device)
    bias = torch.randn(32, device=device) * 0.1
    with_rows, alone = (
        route(x, weight, bias, SMALL, Grouping(33, 8), pdl=device == "cuda")
        for route in (route_rows, route_tokens)
    )
    for name in ("ids", "weights", "logits"):
        assert torch.equal(getattr(with_rows, name), getattr(alone, name))
    assert torch.equal(with_rows.order.total, alone.order.total)


@pytest.mark.interpreted
def test_the_interpreted_kernels_equal_the_plain_product() -> None:
    # Triton decides at import whether it interprets, so the kernels run in a process of its own.
    program = (
        "from tests.models.ming.thinker.int4 import test_kernels as tests\n"
        "tests.check_products(1, 8, 64, 1, True, 'cpu')\n"
        "tests.check_products(1, 8, 64, 4, True, 'cpu')\n"
        "tests.check_products(40, 16, 128, 2, False, 'cpu')\n"
        "tests.check_products(9, 8, 64, 2, True, 'cpu', zero_after=True)\n"
        "tests.check_products(40, 16, 128, 1, False, 'cpu', zero_after=True)\n"
        "tests.check_products(40, 64, 64, 1, True, 'cpu')\n"
        "for rows, parts, width in ((1, 4, 384), (5, 1, 1024)):\n"
        "    tests.check_swiglu(rows, parts, width, 'cpu')\n"
        "tests.check_experts(1, 8, (2, 1), 'cpu')\n"
        "tests.check_experts(20, 16, (1, 2), 'cpu')\n"
        "tests.check_choice(5, 'cpu')\n"
        "print('equal')\n"
    )
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )
    assert done.stdout == "equal\n", done.stderr


def lay_out(*shape: int, symmetric: bool) -> Int4Matrix:
    """A stack of matrices that has sizes and no numbers."""
    experts, rows, columns = shape
    tiled = experts, rows // 64, columns // 128, 64
    zero = None if symmetric else meta(*tiled, dtype=torch.int16)
    return Int4Matrix(meta(*tiled, 32, dtype=torch.int16), meta(*tiled), zero)


# Compiling takes seconds: one tiling of each kind of product, and the others by their marker.
COMPILED = [(1, True), (1024, False)]


@pytest.mark.parametrize(
    ("rows", "symmetric"),
    [
        pytest.param(*case, marks=[] if case in COMPILED else pytest.mark.long)
        for case in product(DEFAULT_TILINGS, (True, False))
    ],
)
def test_the_products_compile_for_a_gpu(rows: int, symmetric: bool, compiled: list[Any]) -> None:
    from sglang_omni.models.ming.thinker.decode_moe_triton import ExpertOrder
    from sglang_omni.models.ming.thinker.int4.experts import (
        ExpertChoice,
        Int4Experts,
        compute_int4_parts,
    )

    tiling = DEFAULT_TILINGS[rows]
    slots = meta(16 * tiling.height, dtype=torch.int32)
    order = ExpertOrder(slots, meta(16, dtype=torch.int32), meta(1, dtype=torch.int32))
    experts = Int4Experts(
        lay_out(257, 2048, 4096, symmetric=symmetric), lay_out(257, 4096, 1024, symmetric=symmetric)
    )
    choice = ExpertChoice(meta(rows, 9, dtype=torch.int32), meta(rows, 9, dtype=torch.float32))
    compute_int4_parts(meta(rows, 4096), experts, choice, order, tiling, pdl=rows <= 64)
    up, _, down = compiled
    for kernel, tile in ((up, tiling.up), (down, tiling.down)):
        ptx = kernel.asm["ptx"]
        # Hopper's own instruction is of four warps and of at least 16 rows.
        instruction = "wgmma.mma_async" if tiling.height > 8 and tile.warps >= 4 else "mma.sync"
        assert instruction in ptx
        # Words are loaded in the order of the product's operand, and need no other place.
        assert "ldmatrix" in ptx
        assert "st.shared" not in ptx.split(instruction)[1]


@pytest.mark.gpu
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("split", [1, 4])
@pytest.mark.parametrize(
    ("tokens", "height", "cols"),
    [(1, 8, 64), (17, 8, 64), (64, 16, 64), (64, 16, 128), (100, 64, 64), (300, 128, 128)],
)
def test_the_products_agree_on_a_gpu(
    tokens: int, height: int, cols: int, split: int, symmetric: bool
) -> None:
    check_products(tokens, height, cols, split, symmetric, "cuda")


@pytest.mark.gpu
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("zero_after", [True, False])
@pytest.mark.parametrize(
    ("tokens", "height", "cols", "split"),
    [(1, 8, 64, 2), (17, 8, 128, 1), (64, 8, 256, 1), (64, 16, 64, 4), (64, 16, 128, 1)],
)
def test_products_of_two_warps_agree_on_a_gpu(
    tokens: int, height: int, cols: int, split: int, zero_after: bool, symmetric: bool
) -> None:
    check_products(tokens, height, cols, split, symmetric, "cuda", 2, zero_after)


@pytest.mark.gpu
@pytest.mark.parametrize("tokens", [1, 17, 64])
def test_the_experts_of_a_step_agree_on_a_gpu(tokens: int) -> None:
    check_swiglu(tokens, 2, 1024, "cuda")
    check_choice(tokens, "cuda")
    for height, splits in ((8, (2, 1)), (16, (1, 2))):
        check_experts(tokens, height, splits, "cuda")


@pytest.mark.gpu
@pytest.mark.parametrize("tokens", [1, 65, 700, 3000])
def test_the_experts_of_a_prefill_agree_on_a_gpu(tokens: int) -> None:
    from sglang_omni.models.ming.thinker.int4.experts import (
        ExpertChoice,
        multiply_plain,
        run_int4_experts,
    )

    torch.manual_seed(9)
    experts = draw_experts(512, 256, False, "cuda")
    x = torch.randn(tokens, 512, device="cuda", dtype=torch.bfloat16)
    choice = ExpertChoice(draw_ids(tokens).cuda(), torch.rand(tokens, TOP_K, device="cuda"))
    wanted = multiply_plain(x, experts, choice).float()
    found = run_int4_experts(x, experts, choice).float()
    assert (found - wanted).norm() < 2**-6 * wanted.norm()


@pytest.mark.gpu
def test_batch_invariant_outputs_do_not_depend_on_other_rows() -> None:
    from sglang_omni.models.ming.thinker.int4.experts import ExpertChoice, run_int4_experts

    torch.manual_seed(10)
    experts = draw_experts(512, 256, True, "cuda")
    x = torch.randn(300, 512, device="cuda", dtype=torch.bfloat16)
    ids, weights = draw_ids(300).cuda(), torch.rand(300, TOP_K, device="cuda")
    together = run_int4_experts(x, experts, ExpertChoice(ids, weights), batch_invariant=True)
    for few in (1, 9):
        choice = ExpertChoice(ids[:few].contiguous(), weights[:few].contiguous())
        alone = run_int4_experts(x[:few].contiguous(), experts, choice, batch_invariant=True)
        assert torch.equal(alone, together[:few])
