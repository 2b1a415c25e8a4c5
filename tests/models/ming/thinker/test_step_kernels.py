"""The kernels of a decode step's experts give what plain rules give.

They are interpreted here, compiled for a GPU, and run on one.
"""

import os
import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from sglang_omni.models.ming.thinker.fp8 import dequantize_weight, quantize_weight
from sglang_omni.models.ming.thinker.fp8_layout import BLOCK
from sglang_omni.models.ming.thinker.routing import Routing, append_shared_expert, select_experts
from tests.models.ming.thinker.test_kernels import RELEASED, from_eight_bits, meta
from tests.testing.compiling import compiled

if TYPE_CHECKING:
    from sglang_omni.models.ming.thinker.decode_moe_triton import ExpertOrder, Grouping

__all__ = ["compiled"]

SMALL = Routing(experts=32, groups=8, top_groups=4, top_k=4, scale=2.5)


def check_eight_bits(values: Tensor, scales: Tensor, wanted: Tensor) -> None:
    """Each number is within half a step of eight bits, or of the finest one of its block."""
    largest = wanted.unflatten(-1, (-1, BLOCK)).abs().amax(-1)
    torch.testing.assert_close(scales, largest / 448, rtol=1e-3, atol=1e-12)
    near = wanted.abs() * 2**-4 + largest.repeat_interleave(BLOCK, -1) / 448 * 2**-9
    far = (from_eight_bits(values, scales) - wanted).abs() > near * 1.1
    if os.environ.get("TRITON_INTERPRET") == "1":
        # Interpreted, a number that rounds up to a power of two loses its carry.
        scaled = wanted.unflatten(-1, (-1, BLOCK)) / scales[..., None]
        far &= (scaled.abs().log2() % 1 < 0.95).flatten(-2)
    assert not far.any()


def check_router(routing: Routing, hidden: int, dtype: torch.dtype, device: str, rows: int) -> None:
    """Logits are a product's, experts are the plain rule's for them, rows are the same rows."""
    from sglang_omni.models.ming.thinker.decode_moe_triton import Grouping
    from sglang_omni.models.ming.thinker.router_triton import route_rows

    torch.manual_seed(3)
    x = torch.randn(rows, hidden, device=device).to(dtype)
    weight = (torch.randn(routing.experts, hidden, device=device) * hidden**-0.5).to(dtype)
    bias = torch.randn(routing.experts, device=device) * 0.1
    ahead = torch.zeros(300, 1000, device=device) if device == "cuda" else None
    grouping = Grouping(routing.experts + 1, 16, ahead)
    found = route_rows(x, weight, bias, routing, grouping, pdl=device == "cuda")
    logits = (x.double() @ weight.double().T).float()
    near = 1e-4 if dtype == torch.float32 else 2**-6
    torch.testing.assert_close(found.logits.float(), logits, rtol=near, atol=near)
    weights, ids = append_shared_expert(
        *select_experts(found.logits, bias, routing), routing.experts
    )
    order, plain = found.ids.argsort(-1), ids.argsort(-1)
    assert torch.equal(found.ids.long().gather(-1, order), ids.gather(-1, plain))
    torch.testing.assert_close(
        found.weights.gather(-1, order), weights.gather(-1, plain), rtol=1e-4, atol=1e-5
    )
    check_eight_bits(found.rows, found.scales, x.float())
    check_order(found.order, found.ids, grouping)


def check_rows(rows: int, width: int, dtype: torch.dtype, device: str) -> None:
    """Rows in eight bits, blocks of zeros among them, are the same rows."""
    from sglang_omni.models.ming.thinker.fp8_triton import quantize_rows

    torch.manual_seed(8)
    x = torch.randn(rows, width, device=device).to(dtype)
    x[0, :BLOCK] = 0
    values, scales = quantize_rows(x, pdl=device == "cuda")
    check_eight_bits(values[:, BLOCK:], scales[:, 1:], x[:, BLOCK:].float())
    assert not values[0, :BLOCK].float().any()
    assert (scales > 0).all()


def group(ids: Tensor, grouping: "Grouping", *, pdl: bool = False) -> "ExpertOrder":
    """Return the order of expert ids."""
    from sglang_omni.models.ming.thinker.decode_moe_triton import allocate_order, group_by_expert

    order = allocate_order(ids.numel(), grouping, ids.device)
    if ids.device.type != "meta":
        order.total.zero_()
    group_by_expert(ids, grouping, order, pdl=pdl)
    return order


def check_grouping(tokens: int, top_k: int, experts: int, height: int, device: str) -> None:
    """Random expert ids are grouped."""
    from sglang_omni.models.ming.thinker.decode_moe_triton import Grouping

    torch.manual_seed(4)
    routed = torch.rand(tokens, experts - 1, device=device).topk(top_k - 1).indices
    ids = torch.cat((routed, torch.full_like(routed[:, :1], experts - 1)), dim=1).int()
    ahead = torch.zeros(300, 1000, device=device) if device == "cuda" else None
    grouping = Grouping(experts, height, ahead)
    check_order(group(ids, grouping, pdl=device == "cuda"), ids, grouping)


def check_order(order: "ExpertOrder", ids: Tensor, grouping: "Grouping") -> None:
    """Every slot is in a tile of its own expert, once; the rest of a tile is empty."""
    used, height = int(order.total), grouping.height
    slots = order.slots[:used].view(-1, height).long().cpu()
    filled, flat = slots < ids.numel(), ids.flatten().cpu()
    assert sorted(slots[filled].tolist()) == list(range(ids.numel()))
    assert (slots[~filled] == ids.numel()).all()
    assert filled[:, 0].all()
    belongs = order.experts[: len(slots)].cpu()[:, None].expand_as(slots)
    assert torch.equal(flat[slots[filled]], belongs[filled])
    assert used == sum(-(-int(n) // height) * height for n in flat.bincount())


def check_activation_and_sum(rows: int, width: int, dtype: torch.dtype, device: str) -> None:
    """SwiGLU in eight bits, and sums over experts, are those in float32, rounded once."""
    from sglang_omni.models.ming.thinker.decode_moe_triton import apply_swiglu, sum_experts

    torch.manual_seed(5)
    gate_up = torch.randn(rows, 2 * width, device=device).to(dtype)
    gate, up = gate_up.float().chunk(2, dim=-1)
    pdl = device == "cuda"
    check_eight_bits(*apply_swiglu(gate_up, pdl=pdl), F.silu(gate) * up)
    parts = torch.randn(rows, 3, width, device=device).to(dtype)
    near = 1e-5 if dtype == torch.float32 else 2**-7
    wanted = parts.float().sum(1)
    torch.testing.assert_close(sum_experts(parts, pdl=pdl).float(), wanted, rtol=near, atol=near)


def check_sum_and_norm(rows: int, width: int, dtype: torch.dtype, device: str) -> None:
    """A sum over experts, added and normalised, is that in float32, rounded once."""
    from sglang_omni.models.ming.thinker.norm_triton import sum_norm

    torch.manual_seed(8)
    parts = torch.randn(rows, 9, width, device=device).to(dtype)
    residual = torch.randn(rows, width, device=device).to(dtype)
    gain = torch.randn(width, device=device).to(dtype)
    made, total = sum_norm(parts, residual, gain, 1e-6, pdl=device == "cuda")
    wanted = residual.double() + parts.double().sum(1)
    near = 1e-5 if dtype == torch.float32 else 2**-7
    torch.testing.assert_close(total.double(), wanted, rtol=near, atol=near)
    wanted *= (wanted.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * gain.double()
    torch.testing.assert_close(made.double(), wanted, rtol=near, atol=near)


def check_products(tokens: int, cols: int, dtype: torch.dtype, device: str) -> None:
    """Each slot is its row times its expert's weight, times its share."""
    from sglang_omni.models.ming.thinker.decode_moe_gemm_triton import (
        TILE_ROWS,
        MoeGemmTile,
        multiply_experts,
    )
    from sglang_omni.models.ming.thinker.decode_moe_triton import Grouping, apply_swiglu

    torch.manual_seed(7)
    experts, n, k, top_k = 9, 256, 384, 4
    routed = torch.rand(tokens, experts - 1).topk(top_k - 1).indices
    ids = torch.cat((routed, torch.full_like(routed[:, :1], experts - 1)), dim=1).int()
    order = group(ids.to(device), Grouping(experts, TILE_ROWS))
    drawn = [quantize_weight(torch.randn(n, k) / k**0.5) for _ in range(experts)]
    weight, scale = (torch.stack(part).to(device) for part in zip(*drawn, strict=True))
    # Any rows in eight bits: of SwiGLU.
    pdl = device == "cuda"
    gate_up = torch.randn(tokens, 2 * k, device=device)
    rows = apply_swiglu(gate_up, pdl=pdl)
    held = from_eight_bits(*rows).cpu()
    for shares in (None, torch.rand(tokens, top_k, device=device)):
        out = torch.full((tokens * top_k, n), float("nan"), dtype=dtype, device=device)
        multiply_experts(rows, (weight, scale), order, out, MoeGemmTile(cols), shares, pdl=pdl)
        wanted = torch.stack(
            [dequantize_weight(*drawn[e]) @ held[s // top_k] for s, e in enumerate(ids.flatten())]
        )
        if shares is not None:
            wanted *= shares.cpu().flatten()[:, None]
        near = 1e-4 if dtype == torch.float32 else 2**-7
        torch.testing.assert_close(out.float().cpu(), wanted, rtol=near, atol=near)


def check_experts(tokens: int) -> None:
    """A layer's experts are those of whole weights, but for eight bits of rows."""
    from sglang_omni.models.ming.thinker.decode_moe import DecodeExperts
    from sglang_omni.models.ming.thinker.decode_moe_triton import Grouping
    from sglang_omni.models.ming.thinker.router_triton import route_rows
    from sglang_omni.models.ming.thinker.routing import ROUTERS

    torch.manual_seed(6)
    hidden, width, count = 512, 256, SMALL.experts
    x = torch.randn(tokens, hidden, device="cuda", dtype=torch.bfloat16)
    drawn = [torch.randn(2 * width, hidden) / hidden**0.5 for _ in range(count + 1)]
    drawn_down = [torch.randn(hidden, width) / width**0.5 for _ in range(count + 1)]
    (up, up_scale), (down, down_scale) = (
        tuple(torch.stack(part).cuda() for part in zip(*map(quantize_weight, some), strict=True))
        for some in (drawn, drawn_down)
    )
    layer = SimpleNamespace(
        w13_weight=up, w13_weight_scale_inv=up_scale, w2_weight=down, w2_weight_scale_inv=down_scale
    )
    shape = len(ROUTERS), count
    router = SimpleNamespace(
        weight=torch.randn(*shape, hidden, device="cuda").bfloat16() * hidden**-0.5,
        expert_bias=torch.zeros(shape, device="cuda"),
        routing=SMALL,
    )
    step = DecodeExperts(router, layer)
    # Tied experts are as good as each other, and so the kernels' own choice is taken.
    grouping = Grouping(count + 1, 16)
    routed = route_rows(x, router.weight[0], router.expert_bias[0], SMALL, grouping)
    weights, ids = routed.weights, routed.ids
    wanted = torch.zeros(tokens, hidden, device="cuda")
    for token, slot in ((t, s) for t in range(tokens) for s in range(ids.shape[1])):
        expert = int(ids[token, slot])
        gate, other = (dequantize_weight(up[expert], up_scale[expert]) @ x[token].float()).chunk(2)
        made = dequantize_weight(down[expert], down_scale[expert]) @ (F.silu(gate) * other)
        wanted[token] += weights[token, slot] * made
    found = step(x)
    assert torch.equal(step(x), found)
    assert (found.float() - wanted).norm() < 0.06 * wanted.norm()


@pytest.mark.interpreted
def test_the_interpreted_kernels_equal_the_plain_rules() -> None:
    # Triton decides at import whether it interprets, so the kernels run in a process of its own.
    program = (
        "import torch\n"
        "from tests.models.ming.thinker import test_step_kernels as tests\n"
        "for rows in (1, 5):\n"
        "    tests.check_router(tests.SMALL, 512, torch.float32, 'cpu', rows)\n"
        "    tests.check_rows(rows, 1280, torch.float32, 'cpu')\n"
        "    tests.check_activation_and_sum(rows, 384, torch.float32, 'cpu')\n"
        "    tests.check_sum_and_norm(rows, 300, torch.float32, 'cpu')\n"
        "tests.check_router(tests.RELEASED, 256, torch.float16, 'cpu', 17)\n"
        "for tokens in (1, 7, 40): tests.check_grouping(tokens, 5, 33, 16, 'cpu')\n"
        "tests.check_grouping(64, 9, 257, 32, 'cpu')\n"
        "for tokens, cols in ((1, 64), (40, 128)):\n"
        "    tests.check_products(tokens, cols, torch.float32, 'cpu')\n"
        "print('equal')\n"
    )
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )
    assert done.stdout == "equal\n", done.stderr


@pytest.mark.parametrize("rows", [1, 20, 64])
def test_the_router_compiles_for_a_gpu(rows: int, compiled: list[Any]) -> None:
    from sglang_omni.models.ming.thinker.decode_moe_triton import Grouping
    from sglang_omni.models.ming.thinker.router_triton import route_rows

    bias, grouping = meta(256, dtype=torch.float32), Grouping(257, 16, meta(512, 128))
    route_rows(meta(rows, 4096), meta(256, 4096), bias, RELEASED, grouping, pdl=True)
    # One row is grouped where its experts are selected.
    assert len(compiled) == (2 if rows == 1 else 3)


def test_what_stands_around_the_products_compiles_for_a_gpu(compiled: list[Any]) -> None:
    from sglang_omni.models.ming.thinker.decode_moe_triton import (
        Grouping,
        apply_swiglu,
        sum_experts,
    )
    from sglang_omni.models.ming.thinker.norm_triton import sum_norm

    ids = meta(64, 9, dtype=torch.int32)
    group(ids, Grouping(257, 16, meta(512, 128)), pdl=True)
    apply_swiglu(meta(576, 2048), pdl=True)
    sum_experts(meta(64, 9, 4096), pdl=True)
    sum_norm(meta(64, 9, 4096), meta(64, 4096), meta(4096), 1e-6, pdl=True)
    assert len(compiled) == 4


@pytest.mark.parametrize("rows", [1, 8, 16, 32, 64])
def test_the_products_of_experts_compile_for_a_gpu(rows: int, compiled: list[Any]) -> None:
    from sglang_omni.models.ming.thinker.decode_moe import select_tiling
    from sglang_omni.models.ming.thinker.decode_moe_gemm_triton import multiply_experts
    from sglang_omni.models.ming.thinker.decode_moe_triton import Grouping

    def make_fp8(*shape: int) -> tuple[Tensor, Tensor]:
        scale = meta(
            *shape[:-2], shape[-2] if len(shape) < 3 else shape[-2] // 128, shape[-1] // 128
        )
        return meta(*shape, dtype=torch.float8_e4m3fn), scale.float()

    ids, cut = meta(rows, 9, dtype=torch.int32), select_tiling(rows)
    order = group(ids, Grouping(257, 16))
    up, down = make_fp8(257, 2048, 4096), make_fp8(257, 4096, 1024)
    shares = meta(rows, 9, dtype=torch.float32)
    multiply_experts(make_fp8(rows, 4096), up, order, meta(rows * 9, 2048), cut.up, pdl=True)
    multiply_experts(
        make_fp8(rows * 9, 1024),
        down,
        order,
        meta(rows * 9, 4096),
        cut.down,
        shares,
        pdl=True,
    )
    # Eight bits times eight bits, on the tensor cores of a group of warps.
    assert all("wgmma" in made.asm["ptx"] for made in compiled[1:])
    assert len(compiled) == 3


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rows", [1, 16, 33, 64])
def test_the_router_agrees_on_a_gpu(dtype: torch.dtype, rows: int) -> None:
    check_router(RELEASED, 4096, dtype, "cuda", rows)


@pytest.mark.gpu
@pytest.mark.parametrize("rows", [1, 33, 64])
def test_rows_in_eight_bits_agree_on_a_gpu(rows: int) -> None:
    check_rows(rows, 4096, torch.bfloat16, "cuda")


@pytest.mark.gpu
@pytest.mark.parametrize("tokens", [1, 3, 16, 64])
def test_the_order_agrees_on_a_gpu(tokens: int) -> None:
    for height in (16, 32, 64):
        check_grouping(tokens, 9, 257, height, "cuda")


@pytest.mark.gpu
@pytest.mark.parametrize("width", [256, 1024])
def test_activation_and_sum_agree_on_a_gpu(width: int) -> None:
    check_activation_and_sum(70, width, torch.bfloat16, "cuda")
    check_sum_and_norm(64, 4 * width, torch.bfloat16, "cuda")


@pytest.mark.gpu
@pytest.mark.parametrize("cols", [32, 64, 128])
@pytest.mark.parametrize("tokens", [1, 17, 64])
def test_the_products_agree_on_a_gpu(tokens: int, cols: int) -> None:
    check_products(tokens, cols, torch.bfloat16, "cuda")


@pytest.mark.gpu
@pytest.mark.parametrize("tokens", [1, 17, 64])
def test_the_experts_of_a_step_agree_on_a_gpu(tokens: int) -> None:
    check_experts(tokens)
