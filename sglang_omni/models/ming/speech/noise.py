"""Counter-based Gaussian noise: a pure function of (seed, segment, patch, index).

There is no generator state: a request draws the same numbers alone, in a batch, after a warm-up
or inside a CUDA graph. Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2,
3", 2011) in integer arithmetic is exact on every device. Box-Muller runs in float64 and is
rounded to float32, which hides the last-bit differences between CPU and GPU libraries.
"""

import math

import torch
from torch import Tensor

ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
WORD_MASK = 0xFFFFFFFF
WORDS_PER_BLOCK = 4

Words = tuple[Tensor, Tensor, Tensor, Tensor]


def philox4x32(counter: Words, key: tuple[Tensor, Tensor]) -> Words:
    """Return four random 32-bit words per counter.

    All arguments and results are int64 tensors that hold unsigned 32-bit words and broadcast
    against each other.
    """
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        high0, low0 = _multiply(c0, MULTIPLIERS[0])
        high1, low1 = _multiply(c2, MULTIPLIERS[1])
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + KEY_STEPS[0]) & WORD_MASK, (k1 + KEY_STEPS[1]) & WORD_MASK
    return c0, c1, c2, c3


def sample_gaussian(
    seed: Tensor, segment: Tensor, patch: Tensor, count: int, *, first: int = 0
) -> Tensor:
    """Return standard normal numbers `first` .. `first + count - 1` of each row.

    Rows do not depend on each other.

    Args:
        seed: int64 [batch].
        segment: int64 [batch].
        patch: int64 [batch], of which the low 32 bits are used.
        count: How many numbers, a multiple of four.
        first: The index of the first one, a multiple of four.

    Returns:
        float32 [batch, count] on the device of `seed`.

    Raises:
        ValueError: `first` or `count` is not a multiple of four.
    """
    if first % WORDS_PER_BLOCK or count % WORDS_PER_BLOCK:
        raise ValueError(f"first {first} and count {count} must be multiples of {WORDS_PER_BLOCK}")
    end_block = (first + count) // WORDS_PER_BLOCK
    blocks = torch.arange(first // WORDS_PER_BLOCK, end_block, device=seed.device)
    counter = (blocks[None], _to_column(patch), _to_column(segment), _to_column(segment >> 32))
    words = philox4x32(counter, (_to_column(seed), _to_column(seed >> 32)))
    pairs = (_box_muller(words[0], words[1]), _box_muller(words[2], words[3]))
    return torch.stack((*pairs[0], *pairs[1]), dim=-1).flatten(1)


def _to_column(values: Tensor) -> Tensor:
    """Return the low 32 bits of `values` [batch] as unsigned words [batch, 1]."""
    return (values & WORD_MASK)[:, None]


def _multiply(word: Tensor, factor: int) -> tuple[Tensor, Tensor]:
    """Return the high and low halves of a 64-bit product; int64 overflow keeps the bits."""
    product = word * factor
    return (product >> 32) & WORD_MASK, product & WORD_MASK


def _box_muller(word_a: Tensor, word_b: Tensor) -> tuple[Tensor, Tensor]:
    """Return two independent normal numbers from two words; (word + 1) / 2^32 is never 0."""
    radius = torch.sqrt(-2.0 * torch.log((word_a + 1).double() * 2.0**-32))
    angle = word_b.double() * (2.0 * math.pi * 2.0**-32)
    return (radius * angle.cos()).float(), (radius * angle.sin()).float()
