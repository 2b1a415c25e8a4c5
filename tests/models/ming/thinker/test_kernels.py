"""The thinker's kernels give what the plain rules give: interpreted here, compiled on a GPU."""

import os
import subprocess
import sys
from itertools import product
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.tools.hopper import read_resources
from sglang_omni.models.ming.thinker.fp8_layout import BLOCK
from sglang_omni.models.ming.thinker.rope import apply_rotary as rotate_plainly
from sglang_omni.models.ming.thinker.rope import (
    assign_frequency_axes,
    compute_inverse_frequencies,
    compute_rotary_tables,
)
from sglang_omni.models.ming.thinker.routing import (
    ROUTERS,
    Routing,
    append_shared_expert,
    select_experts,
    select_router,
)
from tests.testing.compiling import compiled

__all__ = ["compiled"]

TINY = Routing(experts=16, groups=8, top_groups=4, top_k=4, scale=2.5)
RELEASED = Routing(experts=256, groups=8, top_groups=4, top_k=8, scale=2.5)
SHAPES = [(4, 2, 128), (32, 4, 128), (3, 1, 96)]


def check_routing(routing: Routing, dtype: torch.dtype, device: str, tokens: int) -> None:
    """Of one router and of three by route id, all experts and weights are the plain rule's."""
    from sglang_omni.models.ming.thinker.routing_triton import select_experts_fused

    torch.manual_seed(0)
    count = len(ROUTERS)
    logits = torch.randn(tokens, count * routing.experts, device=device).to(dtype)
    bias = torch.randn(count, routing.experts, device=device) * 0.1
    routes = torch.randint(0, count, (tokens,), device=device, dtype=torch.uint8)
    text = logits[:, : routing.experts]
    chosen = select_router(logits.unflatten(-1, (count, -1)), bias, routes)
    for fused, plain in (
        (select_experts_fused(text, bias, routing), select_experts(text, bias[0], routing)),
        (select_experts_fused(logits, bias, routing, routes), select_experts(*chosen, routing)),
    ):
        weights, ids = append_shared_expert(*plain, routing.experts)
        order, plain_order = fused[1].argsort(-1), ids.argsort(-1)
        torch.testing.assert_close(
            fused[1].long().gather(-1, order), ids.gather(-1, plain_order), rtol=0, atol=0
        )
        torch.testing.assert_close(
            fused[0].gather(-1, order), weights.gather(-1, plain_order), rtol=1e-4, atol=1e-5
        )
    for given, chosen_routes in ((text, None), (logits, routes)):
        whole = select_experts_fused(given, bias, routing, chosen_routes)
        routed = select_experts_fused(given, bias, routing, chosen_routes, append_shared=False)
        for parts, all_parts in zip(routed, whole, strict=True):
            assert torch.equal(parts, all_parts[:, : routing.top_k])


def check_ties(routing: Routing, device: str, tokens: int) -> None:
    """Of equal scores the lower index goes first, and slots are in order of the scores."""
    from sglang_omni.models.ming.thinker.routing_triton import select_experts_fused

    torch.manual_seed(9)
    # One row in four has no equal scores among the best.
    logits = torch.randint(-4, 5, (tokens, routing.experts), device=device).float()
    logits[::4] += torch.randn(routing.experts, device=device)
    bias = torch.zeros(1, routing.experts, device=device)
    scores = logits.sigmoid()
    grouped = scores.unflatten(-1, (routing.groups, -1))
    group_scores = grouped.topk(2, dim=-1).values.sum(-1)
    best = group_scores.sort(dim=-1, descending=True, stable=True).indices[:, : routing.top_groups]
    is_open = torch.zeros_like(group_scores, dtype=torch.bool).scatter_(-1, best, True)
    allowed = grouped.where(is_open[..., None], float("-inf")).flatten(-2)
    wanted = allowed.sort(dim=-1, descending=True, stable=True).indices[:, : routing.top_k]
    weights, ids = select_experts_fused(logits, bias, routing)
    assert torch.equal(ids[:, : routing.top_k].long(), wanted)
    chosen = scores.gather(-1, wanted)
    torch.testing.assert_close(
        weights[:, : routing.top_k], chosen / chosen.sum(-1, keepdim=True) * routing.scale
    )


def plain_heads(x: Tensor, gain: Tensor, tables: tuple[Tensor, Tensor], dim: int) -> Tensor:
    """Normalised and rotated heads [tokens, heads * dim] of x, in float32."""
    heads = x.float().unflatten(-1, (-1, dim))
    normed = F.rms_norm(heads, (dim,), gain.float(), 1e-6)
    return rotate_plainly(normed, *tables).flatten(1)


def check_heads(shape: tuple[int, int, int], dtype: torch.dtype, device: str) -> None:
    """Queries and keys are the plain rule's; keys and values lie in their slots of the cache."""
    from sglang_omni.models.ming.thinker.rope_triton import LayerKVCache, prepare_queries_and_keys

    torch.manual_seed(1)
    heads, kv_heads, dim = shape
    qkv = torch.randn(7, (heads + 2 * kv_heads) * dim, device=device).to(dtype)
    gains = torch.rand(dim, device=device).to(dtype), torch.rand(dim, device=device).to(dtype)
    positions = torch.randint(-50, 30_000, (3, 7), device=device)
    rows = torch.tensor(
        assign_frequency_axes((dim // 16, dim * 3 // 32, dim * 3 // 32)), device=device
    )
    tables = compute_rotary_tables(
        positions, compute_inverse_frequencies(dim // 2, 1e6).to(device), rows
    )
    cache = LayerKVCache(
        torch.zeros(20, kv_heads, dim, dtype=dtype, device=device),
        torch.zeros(20, kv_heads, dim, dtype=dtype, device=device),
        torch.tensor([3, 19, 0, 7, 5, 11, 1], device=device),
    )
    pdl = device == "cuda"
    q, k = prepare_queries_and_keys(qkv, gains, tables, (heads, kv_heads), 1e-6, cache, pdl=pdl)
    split = qkv.split([heads * dim, kv_heads * dim, kv_heads * dim], dim=-1)
    # Interpreted, a cast to bfloat16 truncates where a GPU rounds: one unit in the last place.
    rtol, atol = (1e-5, 1e-5) if dtype == torch.float32 else (2**-7, 1e-3)
    for made, part, gain in ((q, split[0], gains[0]), (k, split[1], gains[1])):
        plain = plain_heads(part, gain, tables, dim)
        torch.testing.assert_close(made.float(), plain, rtol=rtol, atol=atol)
    assert torch.equal(cache.keys[cache.slots].flatten(1), k)
    assert torch.equal(cache.values[cache.slots].flatten(1), split[2])
    untouched = sorted(set(range(20)) - set(cache.slots.tolist()))
    assert not cache.keys[untouched].any()
    assert not cache.values[untouched].any()
    ahead = torch.zeros(512, 1024, dtype=dtype, device=device) if device == "cuda" else None
    alone = prepare_queries_and_keys(qkv, gains, tables, (heads, kv_heads), 1e-6, None, ahead)
    assert torch.equal(alone[0], q)
    assert torch.equal(alone[1], k)


def from_eight_bits(values: Tensor, scales: Tensor) -> Tensor:
    """Rows from their eight bits, in float32."""
    return (values.float().unflatten(-1, (-1, BLOCK)) * scales[..., None]).flatten(-2)


def check_products(
    rows: int, shape: tuple[int, int], split: int, dtype: torch.dtype, device: str
) -> None:
    """Few rows times a quantised weight are the product with the weight that it stands for.

    The rows are as they are, or as their eight bits say.
    """
    from sglang_omni.kernels.split_k import Workspace
    from sglang_omni.models.ming.thinker.fp8 import dequantize_weight, quantize_weight
    from sglang_omni.models.ming.thinker.fp8_triton import quantize_rows
    from sglang_omni.models.ming.thinker.small_batch_gemm_triton import (
        SmallBatchTile,
        small_batch_linear,
    )

    torch.manual_seed(2)
    values, scale = quantize_weight(torch.randn(shape) * torch.linspace(0.1, 3, shape[1]))
    x = torch.randn(rows, shape[1]).to(device, dtype)
    space = Workspace(split * rows * shape[0], torch.device(device))
    taken = {False: x, True: from_eight_bits(*quantize_rows(x))}
    for cols, swapped, is_fp8 in product((32, 64, 128), (False, True), (False, True)):
        tile = SmallBatchTile(cols, split, swapped=swapped, fp8=is_fp8)
        wanted = taken[is_fp8].double().cpu() @ dequantize_weight(values, scale).double().T
        # A card sums products of eight bits in fewer bits than 24, for 128 of them.
        near = 2**-7 if dtype != torch.float32 or (is_fp8 and device == "cuda") else 1e-5
        # Twice: a shared sum leaves its counters as it found them.
        for _ in range(2):
            weight = values.to(device), scale.to(device)
            found = small_batch_linear(x, *weight, space, tile, pdl=device == "cuda")
            torch.testing.assert_close(found.double().cpu(), wanted, rtol=near, atol=near * 30)
        exact = torch.full_like(found, float("nan"), dtype=torch.float32)
        given = small_batch_linear(x, *weight, space, tile, pdl=device == "cuda", out=exact)
        assert given is exact
        assert torch.equal(exact.to(dtype), found)
    assert not space.arrived.any()


def check_all_weights() -> None:
    """Every number that a weight can be passes through a product unchanged."""
    from sglang_omni.kernels.split_k import Workspace
    from sglang_omni.models.ming.thinker.small_batch_gemm_triton import (
        MAX_ROWS,
        SmallBatchTile,
        small_batch_linear,
    )

    codes = torch.arange(256, dtype=torch.uint8, device="cuda").repeat(128 * 128 // 256)
    weight = codes.where(codes & 127 != 127, codes - 1).view(torch.float8_e4m3fn).view(128, 128)
    space = Workspace(MAX_ROWS * 128, torch.device("cuda"))
    x = torch.eye(128, device="cuda", dtype=torch.bfloat16)[:MAX_ROWS]
    scale = torch.ones(1, 1, device="cuda")
    for swapped in (False, True):
        found = small_batch_linear(x, weight, scale, space, SmallBatchTile(64, 1, swapped=swapped))
        assert torch.equal(found, weight.T[:MAX_ROWS].to(torch.bfloat16))


def check_one_row(shape: tuple[int, int], dtype: torch.dtype, device: str) -> None:
    """One row times a quantised weight is the product with the weight that it stands for."""
    from sglang_omni.models.ming.thinker.fp8 import dequantize_weight, quantize_weight
    from sglang_omni.models.ming.thinker.one_row_gemm_triton import OneRowTile, multiply_one_row

    torch.manual_seed(3)
    values, scale = quantize_weight(torch.randn(shape) * torch.linspace(0.1, 3, shape[1]))
    x = torch.randn(1, shape[1]).to(device, dtype)
    wanted = x.double().cpu() @ dequantize_weight(values, scale).double().T
    near = 1e-5 if dtype == torch.float32 else 2**-8
    for outputs, warps in ((8, 4), (16, 8), (64, 4)):
        out = torch.full((1, shape[0]), float("nan"), dtype=dtype, device=device)
        tile = OneRowTile(outputs, warps, registers=255)
        weight = values.to(device), scale.to(device)
        found = multiply_one_row(x, *weight, out, tile, pdl=device == "cuda")
        torch.testing.assert_close(found.double().cpu(), wanted, rtol=near, atol=near * 30)


def test_one_row_of_even_sizes_has_a_kernel() -> None:
    from sglang_omni.models.ming.thinker.one_row_gemm_triton import supports_one_row

    assert supports_one_row(1, 5120, 4096)
    assert supports_one_row(1, 128, 2048)
    assert not supports_one_row(2, 5120, 4096)
    assert not supports_one_row(1, 5120, 8192)
    assert not supports_one_row(1, 4096, 1280)
    assert not supports_one_row(1, 100, 4096)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_one_row_on_a_gpu_equals_the_plain_product(dtype: torch.dtype) -> None:
    for shape in ((5120, 4096), (4096, 4096), (256, 2048)):
        check_one_row(shape, dtype, "cuda")


def test_the_kernel_of_one_row_compiles_for_a_gpu(compiled: list[Any]) -> None:
    from sglang_omni.models.ming.thinker.small_batch_gemm_triton import small_batch_linear

    weight, scale = meta(5120, 4096, dtype=torch.float8_e4m3fn), meta(40, 32, dtype=torch.float32)
    space: Any = None
    assert small_batch_linear(meta(1, 4096), weight, scale, space, pdl=True).shape == (1, 5120)
    assert len(compiled) == 1
    # What is read before the row is in registers.
    assert read_resources(compiled[0]).spilled_bytes == 0


@pytest.mark.interpreted
def test_the_interpreted_kernels_equal_the_plain_rules() -> None:
    # Triton decides at import whether it interprets, so the kernels run in a process of its own.
    program = (
        "import torch\n"
        "from tests.models.ming.thinker import test_kernels as tests\n"
        "for dtype in (torch.float32, torch.bfloat16):\n"
        "    [tests.check_routing(one, dtype, 'cpu', 5) for one in (tests.TINY, tests.RELEASED)]\n"
        "    [tests.check_ties(one, 'cpu', 8) for one in (tests.TINY, tests.RELEASED)]\n"
        "    [tests.check_heads(shape, dtype, 'cpu') for shape in ((4, 2, 128), (3, 1, 96))]\n"
        # Interpreted, eight bits do not become bfloat16.
        "for dtype in (torch.float32, torch.float16):\n"
        "    for rows, split in ((1, 1), (5, 2), (17, 3), (2, 4)):\n"
        "        tests.check_products(rows, (256, 384), split, dtype, 'cpu')\n"
        "    tests.check_one_row((256, 512), dtype, 'cpu')\n"
        "print('equal')\n"
    )
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )
    assert done.stdout == "equal\n", done.stderr


def meta(*shape: int, dtype: torch.dtype = torch.bfloat16) -> Tensor:
    return torch.empty(shape, dtype=dtype, device="meta")


@pytest.mark.parametrize(("routed", "shared"), [(False, True), (True, True), (True, False)])
def test_routing_compiles_for_a_gpu(routed: bool, shared: bool, compiled: list[Any]) -> None:
    from sglang_omni.models.ming.thinker.routing_triton import select_experts_fused

    bias = meta(3, 256, dtype=torch.float32)
    routes = meta(8, dtype=torch.uint8) if routed else None
    logits = meta(8, 768 if routed else 256)
    select_experts_fused(logits, bias, RELEASED, routes, append_shared=shared)
    assert len(compiled) == 1


@pytest.mark.parametrize("stored", [False, True])
def test_heads_compile_for_a_gpu(stored: bool, compiled: list[Any]) -> None:
    from sglang_omni.models.ming.thinker.rope_triton import LayerKVCache, prepare_queries_and_keys

    part = meta(20, 4, 128)
    cache = LayerKVCache(part, part, meta(7, dtype=torch.int64)) if stored else None
    tables = meta(7, 32, dtype=torch.float32), meta(7, 32, dtype=torch.float32)
    gains, ahead = (meta(128), meta(128)), meta(512, 128)
    prepare_queries_and_keys(
        meta(7, 40 * 128), gains, tables, (32, 4), 1e-6, cache, ahead, pdl=True
    )
    assert len(compiled) == 1


@pytest.mark.parametrize("rows", [1, 17, 33])
def test_products_compile_for_a_gpu(rows: int, compiled: list[Any]) -> None:
    from sglang_omni.kernels.split_k import Workspace
    from sglang_omni.models.ming.thinker.small_batch_gemm_triton import (
        select_tile,
        small_batch_linear,
    )

    weight, scale = meta(512, 512, dtype=torch.float8_e4m3fn), meta(4, 4, dtype=torch.float32)
    space = Workspace(1 << 20, torch.device("meta"))
    small_batch_linear(meta(rows, 512), weight, scale, space, pdl=True)
    assert len(compiled) == (2 if select_tile(rows, 512).fp8 else 1)


@pytest.mark.parametrize("rows", [1, 17, 33])
def test_the_product_of_the_head_compiles_for_a_gpu(rows: int, compiled: list[Any]) -> None:
    from sglang_omni.kernels.split_k import Workspace
    from sglang_omni.models.ming.thinker.small_batch_gemm_triton import (
        select_tile,
        small_batch_linear,
    )

    # The released head, whose tiles and outputs are more than a split sum could have.
    vocabulary, hidden = 157_184, 4096
    weight = meta(vocabulary, hidden, dtype=torch.float8_e4m3fn)
    scale = meta(vocabulary // BLOCK, hidden // BLOCK, dtype=torch.float32)
    logits = meta(rows, vocabulary, dtype=torch.float32)
    space = Workspace(1, torch.device("meta"))
    small_batch_linear(meta(rows, hidden), weight, scale, space, pdl=True, out=logits)
    tile = select_tile(rows, vocabulary)
    assert tile.split == 1
    assert len(compiled) == (2 if tile.fp8 else 1)


def test_more_rows_than_a_decode_step_has_are_the_librarys() -> None:
    from sglang_omni.kernels.split_k import Workspace
    from sglang_omni.models.ming.thinker.small_batch_gemm_triton import MAX_ROWS, wrap_linear

    asked: list[dict[str, Any]] = []
    theirs = torch.zeros(0)

    def library(**arguments: Any) -> torch.Tensor:
        asked.append(arguments)
        return theirs

    space = Workspace(1, torch.device("cpu"))
    ours, weight = wrap_linear(library, space), torch.zeros(128, 128)
    for rows in (0, MAX_ROWS + 1):
        x = torch.zeros(rows, 128)
        assert ours(x, weight, [128, 128], weight) is theirs
        assert asked.pop()["input"] is x


@pytest.mark.gpu
@pytest.mark.parametrize(("rows", "split"), [(1, 1), (7, 4), (16, 3), (32, 5), (33, 4), (64, 8)])
def test_products_agree_on_a_gpu(rows: int, split: int) -> None:
    check_products(rows, (640, 1024), split, torch.bfloat16, "cuda")


@pytest.mark.gpu
def test_no_weight_is_rounded_on_a_gpu() -> None:
    check_all_weights()


@pytest.mark.gpu
@pytest.mark.parametrize("routing", [TINY, RELEASED])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_routing_agrees_on_a_gpu(routing: Routing, dtype: torch.dtype) -> None:
    check_routing(routing, dtype, "cuda", 33)


@pytest.mark.gpu
@pytest.mark.parametrize("routing", [TINY, RELEASED])
def test_ties_go_to_the_lower_index_on_a_gpu(routing: Routing) -> None:
    check_ties(routing, "cuda", 64)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_heads_agree_on_a_gpu(shape: tuple[int, int, int], dtype: torch.dtype) -> None:
    check_heads(shape, dtype, "cuda")
