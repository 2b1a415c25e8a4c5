"""Attention of a decode step is the plain rule's: interpreted here, compiled for and on a GPU."""

import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from sglang_omni.models.ming.thinker.small_batch_gemm_triton import MAX_ROWS
from tests.testing.compiling import compiled

__all__ = ["compiled"]

SHAPES = [(32, 4, 128), (8, 2, 64), (4, 4, 128)]
"""Query heads, key heads and their width."""


def draw_case(
    lengths: list[int], shape: tuple[int, int, int], dtype: torch.dtype, device: str
) -> tuple[Tensor, tuple[Tensor, Tensor], Any, tuple[int, int], float]:
    """Random arguments of `attend`, with slots and requests in no order."""
    from sglang_omni.models.ming.thinker.attention_triton import CachedTokens

    torch.manual_seed(len(lengths))
    (heads, kv_heads, dim), rows, context = shape, len(lengths), max(lengths)
    # Values of slots that no request has would be seen at once.
    slots = torch.randperm(rows * context + 7)[: rows * context].view(rows, context)
    keys, values = (
        torch.full((rows * context + 7, kv_heads, dim), 50.0).to(dtype) for _ in range(2)
    )
    requests = torch.randperm(rows + 2)[:rows]
    table = torch.zeros(rows + 2, context, dtype=torch.int32)
    for row, length in enumerate(lengths):
        old = slots[row, : length - 1]
        table[requests[row], : length - 1] = old.int()
        for stored in (keys, values):
            stored[old] = torch.randn(length - 1, kv_heads, dim).to(dtype)
    qkv = torch.randn(rows, (heads + 2 * kv_heads) * dim).to(dtype).to(device)
    query, key, value = qkv.split([heads * dim, kv_heads * dim, kv_heads * dim], dim=1)
    cached = CachedTokens(
        *(x.to(device) for x in (keys, values, table, requests, torch.tensor(lengths)))
    )
    return query.contiguous(), (key.contiguous(), value), cached, (heads, kv_heads), dim**-0.5


def check_attention(
    lengths: list[int],
    shape: tuple[int, int, int],
    dtype: torch.dtype,
    device: str,
    tile: tuple[int, int] | None = None,
) -> None:
    """All rows are the plain rule's, twice, since the counters of programs must be 0 again."""
    from sglang_omni.models.ming.thinker.attention_triton import (
        AttentionTile,
        attend,
        attend_plainly,
        get_attention_workspace,
    )

    case = draw_case(lengths, shape, dtype, device)
    wanted = attend_plainly(*case)
    tolerance = 1e-5 if dtype == torch.float32 else 2e-2
    sizes = None if tile is None else AttentionTile(*tile)
    for _ in range(2):
        found = attend(*case, tile=sizes, pdl=device == "cuda")
        torch.testing.assert_close(found.float(), wanted, rtol=tolerance, atol=tolerance)
    space = get_attention_workspace(shape[0], shape[2], case[0].device)
    assert not space.arrived.any()


@pytest.mark.interpreted
def test_the_interpreted_kernel_equals_the_plain_rule() -> None:
    # Triton decides at import whether it interprets, so the kernel runs in a process of its own.
    program = (
        "import torch\n"
        "from tests.models.ming.thinker import test_attention as tests\n"
        # One token, a part that is not full, whole blocks, more blocks than parts.
        "for lengths in ([1], [2, 16, 17], [33, 1, 100], [65, 64, 129, 300]):\n"
        "    for tile in ((16, 1), (16, 4), (32, 8), (64, 2)):\n"
        "        tests.check_attention(lengths, (8, 2, 64), torch.float32, 'cpu', tile)\n"
        "for shape in tests.SHAPES:\n"
        "    tests.check_attention([70, 5], shape, torch.float16, 'cpu')\n"
        "print('equal')\n"
    )
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )
    assert done.stdout == "equal\n", done.stderr


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "lengths", [[1], [257], [30_000], [5, 900], [300] * 16, list(range(1, 1281, 20))]
)
def test_attention_on_a_gpu_equals_the_plain_rule(
    lengths: list[int], shape: tuple[int, int, int]
) -> None:
    check_attention(lengths, shape, torch.bfloat16, "cuda")


def test_few_rows_of_one_new_token_are_our_kernels() -> None:
    from sglang_omni.models.ming.thinker.decode_attention import supports_step
    from sglang_omni.models.ming.thinker.rope_triton import LayerKVCache

    def is_ours(rows: int, decodes: bool = True, stored: torch.dtype = torch.bfloat16) -> bool:
        keys = torch.empty(1, 1, 8, dtype=stored)
        batch: Any = SimpleNamespace(forward_mode=SimpleNamespace(is_decode=lambda: decodes))
        query = torch.empty(rows, 8, dtype=torch.bfloat16)
        return supports_step(query, LayerKVCache(keys, keys, torch.empty(0)), batch)

    assert is_ours(1)
    assert is_ours(MAX_ROWS)
    assert not is_ours(0)
    assert not is_ours(MAX_ROWS + 1)
    assert not is_ours(1, decodes=False)
    assert not is_ours(1, stored=torch.float8_e4m3fn)


@pytest.mark.parametrize("rows", [1, 5, 16, 64])
def test_attention_compiles_for_a_gpu(rows: int, compiled: list[Any]) -> None:
    from sglang_omni.models.ming.thinker.attention_triton import CachedTokens, attend

    def meta(*shape: int, dtype: torch.dtype = torch.bfloat16) -> Tensor:
        return torch.empty(shape, dtype=dtype, device="meta")

    cached = CachedTokens(
        meta(5000, 4, 128),
        meta(5000, 4, 128),
        meta(70, 32_768, dtype=torch.int32),
        meta(rows, dtype=torch.int64),
        meta(rows, dtype=torch.int64),
    )
    key, value = meta(rows, 512), meta(rows, 5120)[:, -512:]
    attend(meta(rows, 4096), (key, value), cached, (32, 4), 128**-0.5, pdl=True)
    assert len(compiled) == 1
