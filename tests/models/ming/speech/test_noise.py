"""Noise is a pure function of (seed, segment, patch, index) with sound statistics."""

import pytest
import torch

from sglang_omni.models.ming.speech.noise import philox4x32, sample_gaussian

# Known answers published with the Random123 library (philox4x32, 10 rounds).
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    (
        (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF),
        (0xFFFFFFFF, 0xFFFFFFFF),
        (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
    ),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


def row(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int64)


def noise(seed: int, segment: int, patch: int, count: int = 256, first: int = 0) -> torch.Tensor:
    return sample_gaussian(row(seed), row(segment), row(patch), count, first=first)[0]


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN)
def test_philox_gives_the_published_known_answers(
    counter: tuple[int, int, int, int], key: tuple[int, int], answer: tuple[int, int, int, int]
) -> None:
    c0, c1, c2, c3 = map(row, counter)
    k0, k1 = map(row, key)
    words = philox4x32((c0, c1, c2, c3), (k0, k1))
    assert tuple(word.item() for word in words) == answer


def test_noise_has_the_moments_of_a_standard_normal() -> None:
    patches = torch.arange(64)
    x = sample_gaussian(
        torch.full_like(patches, 7), torch.zeros_like(patches), patches, 4096
    ).double()
    assert x.mean().abs() < 0.01
    assert (x.var() - 1).abs() < 0.01
    assert (x**3).mean().abs() < 0.03
    assert ((x**4).mean() - 3).abs() < 0.06
    assert 4.0 < x.abs().max() < 7.0


def test_neighbouring_numbers_are_uncorrelated() -> None:
    x = noise(3, 0, 0, 1 << 16).double()
    for lag in (1, 2, 3, 4, 5):
        assert (x[:-lag] * x[lag:]).mean().abs() < 0.02


def test_a_row_does_not_depend_on_the_rest_of_the_batch() -> None:
    seed, segment, patch = row(5, 9, -1, 5), row(0, 1, 2, 0), row(3, 0, 1, 4)
    batch = sample_gaussian(seed, segment, patch, 64)
    for i in range(4):
        alone = sample_gaussian(seed[i : i + 1], segment[i : i + 1], patch[i : i + 1], 64)
        assert torch.equal(batch[i], alone[0])


def test_a_later_index_range_continues_an_earlier_one() -> None:
    whole = noise(11, 2, 5, 2816)
    assert torch.equal(noise(11, 2, 5, 256), whole[:256])
    assert torch.equal(noise(11, 2, 5, 2560, first=256), whole[256:])


def test_patches_segments_seeds_and_index_ranges_share_no_numbers() -> None:
    draws = [
        noise(seed, segment, patch) for seed in (1, 2) for segment in (0, 1) for patch in (0, 1)
    ]
    draws += [noise(1 + (1 << 32), 0, 0), noise(1, 1 << 32, 0), noise(1, 0, 0, 2560, first=256)]
    values = torch.cat(draws)
    # Float32 rounding makes a few of the 4864 numbers equal by chance, an overlap would be >= 256.
    assert values.unique().numel() > values.numel() - 16


def test_a_range_that_cuts_a_counter_block_is_refused() -> None:
    with pytest.raises(ValueError, match="multiples of 4"):
        noise(0, 0, 0, 10)


@pytest.mark.gpu
def test_cuda_draws_the_same_numbers_as_the_cpu() -> None:
    seeds, segments, patches = row(5, -9, 1 << 40), row(0, 1, 2), row(3, 0, 1)
    on_gpu = sample_gaussian(seeds.cuda(), segments.cuda(), patches.cuda(), 4096).cpu()
    assert torch.equal(on_gpu, sample_gaussian(seeds, segments, patches, 4096))
