"""The noise of `sglang_omni/models/ming/speech/noise.py` as one kernel: the same numbers."""

import triton
import triton.language as tl
from torch import Tensor

from sglang_omni.models.ming.speech.noise import KEY_STEPS, MULTIPLIERS, ROUNDS, WORDS_PER_BLOCK

_M0, _M1 = (tl.constexpr(factor) for factor in MULTIPLIERS)
_K0, _K1 = (tl.constexpr(step) for step in KEY_STEPS)
_ROUNDS = tl.constexpr(ROUNDS)
_WORD = tl.constexpr(0xFFFFFFFF)
_TWO_PI = tl.constexpr(6.283185307179586)
_UNIT = tl.constexpr(2.0**-32)


@triton.jit
def _box_muller(word_a, word_b):  # type: ignore[no-untyped-def]
    radius = tl.sqrt(-2.0 * tl.log((word_a + 1).to(tl.float64) * _UNIT))
    angle = word_b.to(tl.float64) * (_TWO_PI * _UNIT)
    return radius * tl.cos(angle), radius * tl.sin(angle)


@triton.jit
def _noise_kernel(  # type: ignore[no-untyped-def]
    seeds,
    segments,
    patches,
    index,
    out,
    round_like,
    enabled,
    FIRST: tl.constexpr,
    ALWAYS: tl.constexpr,
    BLOCKS: tl.constexpr,
    BLOCKS_PAD: tl.constexpr,
):
    row = tl.program_id(0)
    slot = tl.load(index + row)
    if not ALWAYS:  # noqa: SIM102 - this condition is evaluated when the kernel is compiled
        if tl.load(enabled + slot) == 0:
            return
    seed, segment = tl.load(seeds + slot), tl.load(segments + slot)
    # 64-bit words, as in the plain form, keep both halves of a product exact.
    c0 = FIRST + tl.arange(0, BLOCKS_PAD).to(tl.int64)
    c1 = tl.load(patches + slot) & _WORD
    c2, c3 = segment & _WORD, (segment >> 32) & _WORD
    c1, c2, c3 = c1 + c0 * 0, c2 + c0 * 0, c3 + c0 * 0
    k0, k1 = seed & _WORD, (seed >> 32) & _WORD
    for _ in tl.static_range(_ROUNDS):
        first, second = c0 * _M0, c2 * _M1
        c0 = ((second >> 32) & _WORD) ^ c1 ^ k0
        c1 = second & _WORD
        c2 = ((first >> 32) & _WORD) ^ c3 ^ k1
        c3 = first & _WORD
        k0, k1 = (k0 + _K0) & _WORD, (k1 + _K1) & _WORD
    a, b = _box_muller(c0, c1)
    c, d = _box_muller(c2, c3)
    blocks = tl.arange(0, BLOCKS_PAD)
    out_ptrs = out + row * BLOCKS * 4 + blocks * 4
    mask = blocks < BLOCKS
    dtype = round_like.dtype.element_ty
    tl.store(out_ptrs, a.to(tl.float32).to(dtype).to(tl.float32), mask=mask)
    tl.store(out_ptrs + 1, b.to(tl.float32).to(dtype).to(tl.float32), mask=mask)
    tl.store(out_ptrs + 2, c.to(tl.float32).to(dtype).to(tl.float32), mask=mask)
    tl.store(out_ptrs + 3, d.to(tl.float32).to(dtype).to(tl.float32), mask=mask)


def fill_slot_noise(
    seeds: Tensor,
    segments: Tensor,
    patches: Tensor,
    index: Tensor,
    out: Tensor,
    like: Tensor,
    *,
    first: int = 0,
    enabled: Tensor | None = None,
) -> Tensor:
    """Fill `out` with the numbers of `sample_gaussian` for the slots `index`.

    Args:
        seeds: int64 [slots].
        segments: int64 [slots].
        patches: int64 [slots].
        index: Slots of the rows, int64 [n].
        out: Contiguous float32 [n, ...].
        like: The numbers are rounded to its dtype.
        first: Index of the first number.
        enabled: [slots]; the rows of slots for which it is zero stay unchanged.
    """
    count = out[0].numel()
    assert first % WORDS_PER_BLOCK == 0
    assert count % WORDS_PER_BLOCK == 0
    assert out.is_contiguous()
    blocks = count // WORDS_PER_BLOCK
    _noise_kernel[(len(index),)](
        seeds,
        segments,
        patches,
        index,
        out,
        like,
        like if enabled is None else enabled,
        FIRST=first // WORDS_PER_BLOCK,
        ALWAYS=enabled is None,
        BLOCKS=blocks,
        BLOCKS_PAD=triton.next_power_of_2(blocks),
        num_warps=2,
    )
    return out
