"""Every kernel compiles for a Hopper GPU at the released shapes; that takes no GPU.

The interpreter runs what a compiler would refuse: a value whose type differs between branches, say.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from sglang_omni.kernels.split_k import Workspace
from sglang_omni.models.ming.speech.fast.tiling import select_linear_tile
from sglang_omni.models.ming.speech.kernels import (
    attention,
    decode,
    flow,
    fp8,
    linear,
    noise,
    rows,
    vocoder,
    window,
)
from tests.testing.compiling import compiled

__all__ = ["compiled"]

SHARED_BYTES = 227 << 10
N, SLOTS, CONTEXT = 4, 9, 512
WIDTH, HIDDEN, WIDE, LATENT = 1024, 896, 4864, 64


def empty(*shape: int, dtype: torch.dtype = torch.bfloat16) -> Tensor:
    return torch.empty(shape, dtype=dtype, device="meta")


def numbers(count: int) -> Tensor:
    return empty(count, dtype=torch.int64)


def floats(*shape: int) -> Tensor:
    return empty(*shape, dtype=torch.float32)


def product(m: int, n: int, k: int, **options: Any) -> None:
    gated = options.get("gated", False)
    tile = select_linear_tile(m, n, k, split=options.get("add", False))
    weight, space = (
        empty((2 if gated else 1) * n, k),
        Workspace(1 << 20, torch.device("meta")),
    )
    linear.linear(empty(m, k), weight, empty(m, n), tile, space, **options)


def carried(m: int, n: int, k: int, **options: Any) -> None:
    x = linear.FusedNormInput(empty(m, k), floats(m, 56), 1e-6)
    space = Workspace(1 << 20, torch.device("meta"))
    weight = empty((2 if options.get("gated") else 1) * n, k)
    linear.linear(x, weight, empty(m, n), select_linear_tile(m, n, k), space, **options)


def pair(n: int, **options: Any) -> None:
    constants = empty(WIDTH, LATENT), empty(WIDTH)
    state = floats(n, 4, LATENT)
    flow.assemble_guidance_pair(
        empty(WIDTH),
        empty(n, WIDTH),
        empty(WIDTH),
        empty(n, 32, WIDTH),
        state,
        *constants,
        **options,
    )


def guide(n: int, **options: Any) -> None:
    velocity, state, scales = empty(8 * n, LATENT), floats(n, 4, LATENT), floats(SLOTS)
    noise_drawn = floats(n, 4, LATENT)
    flow.apply_guidance(velocity, state, numbers(n), scales, scales, noise_drawn, dt=0.1, **options)


LAUNCHES: dict[str, Callable[[], Any]] = {
    "linear, added": lambda: product(
        1, HIDDEN, WIDE, add=True, bias=empty(HIDDEN), next_norm=(empty(HIDDEN), 1e-6)
    ),
    "linear, added, tens of rows": lambda: product(
        74, WIDTH, 4 * WIDTH, add=True, bias=empty(WIDTH), next_norm=(empty(WIDTH), 1e-6)
    ),
    "linear, carried, gelu": lambda: carried(
        74, 4 * WIDTH, WIDTH, bias=empty(4 * WIDTH), gelu=True
    ),
    "linear, carried, pdl": lambda: carried(74, 3 * WIDTH, WIDTH, pdl=True),
    "linear, carried, gated": lambda: carried(1, WIDE, HIDDEN, gated=True),
    "carry": lambda: linear.prepare_norm_input(empty(N, WIDTH), empty(WIDTH), 1e-6),
    "rms norm": lambda: rows.rms_norm(empty(N, WIDTH), empty(WIDTH), 1e-6, floats(WIDTH)),
    "eight bits": lambda: fp8.quantize_rows(empty(N, WIDTH)),
    "eight bits of gelu": lambda: fp8.quantize_gelu(empty(N, 4 * WIDTH)),
    "eight bits, added and normalised": lambda: fp8.quantize_norm(
        empty(N, WIDTH), empty(WIDTH), 1e-6, floats(WIDTH), empty(N, WIDTH)
    ),
    "silu": lambda: rows.silu_mul(empty(N, 2 * WIDE)),
    "stop head": lambda: rows.compute_stop_probability(
        empty(N, HIDDEN), empty(2, HIDDEN), empty(2)
    ),
    "attention": lambda: attention.short_attention(
        empty(2 * N, 37, 3 * WIDTH), empty(37, 32), empty(37, 32), 16, slice(None)
    ),
    "attention, two heads a program": lambda: attention.short_attention(
        empty(2 * N, 37, 3 * WIDTH),
        empty(37, 32),
        empty(37, 32),
        16,
        slice(None),
        tiling=attention.AttentionTiling(2),
    ),
    "attention, pdl": lambda: attention.short_attention(
        empty(2, 37, 3 * WIDTH), empty(37, 32), empty(37, 32), 16, slice(None), pdl=True
    ),
    "attention of the last rows": lambda: attention.short_attention(
        empty(2 * N, 37, 3 * WIDTH),
        empty(37, 32),
        empty(37, 32),
        16,
        slice(-4, None),
        empty(2 * N, 37, WIDTH),
        floats(WIDTH),
    ),
    "decode": lambda: decode.decode_attention(
        empty(N, 18 * 64),
        empty(SLOTS, 2, CONTEXT, 64),
        empty(SLOTS, 2, CONTEXT, 64),
        numbers(N),
        numbers(SLOTS),
        empty(CONTEXT, 32),
        empty(CONTEXT, 32),
    ),
    "window": lambda: window.window_attention(
        empty(N, 16, 18 * 64),
        empty(SLOTS, 2, 80, 64),
        empty(SLOTS, 2, 80, 64),
        numbers(N),
        numbers(N),
        empty(16_000, 32),
        empty(16_000, 32),
        64,
    ),
    "history": lambda: flow.embed_history(
        empty(SLOTS, 10, 4, LATENT),
        numbers(N),
        numbers(SLOTS),
        32,
        empty(WIDTH, LATENT),
        empty(WIDTH),
    ),
    "pair": lambda: pair(N),
    "pair, pdl": lambda: pair(1, pdl=True),
    "patch": lambda: flow.assemble_patch(
        empty(WIDTH), floats(N, 4, LATENT), empty(WIDTH, LATENT), empty(WIDTH)
    ),
    "guide": lambda: guide(N),
    "guide, pdl": lambda: guide(1, pdl=True),
    "finish": lambda: flow.store_patch(
        floats(N, 4, LATENT),
        empty(N, HIDDEN),
        numbers(N),
        empty(SLOTS, 10, 4, LATENT),
        empty(SLOTS, HIDDEN),
        numbers(SLOTS),
        numbers(SLOTS),
        8,
    ),
    "noise": lambda: noise.fill_slot_noise(
        numbers(SLOTS), numbers(SLOTS), numbers(SLOTS), numbers(N), floats(N, 4, LATENT), empty(1)
    ),
    "wanted noise": lambda: noise.fill_slot_noise(
        numbers(SLOTS),
        numbers(SLOTS),
        numbers(SLOTS),
        numbers(N),
        floats(N, 10, 4, LATENT),
        empty(1),
        first=256,
        enabled=floats(SLOTS),
    ),
    "stretch": lambda: vocoder.upsample_patch(
        empty(SLOTS, 10, 4, LATENT), numbers(N), numbers(N), numbers(N), 4, 8
    ),
    "spectrum": lambda: vocoder.compute_spectrum(empty(16 * N, 3536), 1765, 100.0),
    "overlap": lambda: vocoder.overlap_add(
        floats(N, 16, 3528),
        floats(3528),
        floats(2, 15_435),
        floats(SLOTS, 2, 2646),
        numbers(N),
        numbers(N),
    ),
}


@pytest.mark.parametrize("name", LAUNCHES)
def test_a_kernel_compiles_and_fits_a_multiprocessor(name: str, compiled: list[Any]) -> None:
    LAUNCHES[name]()
    assert len(compiled) == 1
    assert compiled[0].metadata.shared <= SHARED_BYTES
