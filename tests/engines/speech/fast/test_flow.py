"""The kernels around the flow blocks, and the noise, against the plain rules."""

import pytest
import torch
import torch.nn.functional as F

from sglang_omni.models.ming.speech.kernels.flow import (
    apply_guidance,
    assemble_guidance_pair,
    assemble_patch,
    embed_history,
    store_patch,
)
from sglang_omni.models.ming.speech.kernels.noise import fill_slot_noise
from sglang_omni.models.ming.speech.noise import sample_gaussian
from tests.engines.speech.fast.conftest import Draw
from tests.testing.golden import assert_close

N, PAST, PATCH, LATENT, WIDTH = 3, 8, 4, 16, 160
RING, SLOTS = PAST + 2, 6


@pytest.fixture
def index(device: torch.device) -> torch.Tensor:
    return torch.tensor([4, 0, 2], device=device)


@pytest.fixture
def patches(device: torch.device) -> torch.Tensor:
    return torch.tensor([0, 1, 9, 10, 27, 3], device=device)


def test_history_is_read_from_the_ring(
    draw: Draw, tolerance: float, index: torch.Tensor, patches: torch.Tensor
) -> None:
    ring, weight, bias = draw(SLOTS, RING, PATCH, LATENT), draw(WIDTH, LATENT), draw(WIDTH)
    out = embed_history(ring, index, patches, PAST * PATCH, weight, bias)
    for row, slot in enumerate(index.tolist()):
        first = int(patches[slot])
        entries = [(first + step) % RING for step in range(PAST)]
        expected = F.linear(ring[slot, entries].flatten(0, 1).float(), weight.float(), bias.float())
        assert_close(out[row].float(), expected, tolerance)


def test_tokens_of_a_guided_pair(draw: Draw, dtype: torch.dtype, tolerance: float) -> None:
    time, condition, null = draw(WIDTH), draw(N, WIDTH), draw(WIDTH)
    history, weight, bias = draw(N, 32, WIDTH), draw(WIDTH, LATENT), draw(WIDTH)
    state = draw(N, PATCH, LATENT).float()
    out = assemble_guidance_pair(time, condition, null, history, state, weight, bias)
    embedded = F.linear(state.to(dtype), weight, bias)
    heads = torch.cat((time + condition, (time + null).expand(N, -1)))
    body = torch.cat((history, embedded), dim=1).repeat(2, 1, 1)
    assert_close(out.float(), torch.cat((heads[:, None], body), dim=1).float(), tolerance)


def test_tokens_of_a_patch(draw: Draw, dtype: torch.dtype, tolerance: float) -> None:
    cls, weight, bias = draw(WIDTH), draw(WIDTH, LATENT), draw(WIDTH)
    state = draw(N, PATCH, LATENT).float()
    out = assemble_patch(cls, state, weight, bias)
    embedded = F.linear(state.to(dtype), weight, bias)
    expected = torch.cat((cls.expand(N, 1, -1), embedded), dim=1)
    assert_close(out.float(), expected.float(), tolerance)


def test_a_guided_step_of_rows_with_strengths_and_noise_of_their_own(
    draw: Draw, device: torch.device, tolerance: float
) -> None:
    velocity, state = draw(2 * N * PATCH, LATENT), draw(N, PATCH, LATENT).float()
    cfgs = torch.arange(SLOTS, device=device, dtype=torch.float32)
    scales = torch.tensor([0.5, 0.0, 0.3, 0.0, 0.7, 0.0], device=device)
    index = torch.tensor([4, 1, 3, 0, 5, 2], device=device)[:N]
    noise = draw(N, 3, PATCH, LATENT).float()
    noise[scales[index] == 0] = torch.nan
    v, null = velocity.float().view(2, N, PATCH, LATENT)
    expected = state + (v + (v - null) * cfgs[index][:, None, None]) * 0.25
    drawn = torch.nan_to_num(noise[:, 1]) * scales[index][:, None, None]
    apply_guidance(velocity, state, index, cfgs, scales, noise[:, 1], dt=0.25)
    assert_close(state, expected + drawn * 0.5, tolerance)


def test_a_finished_patch_is_noted_and_the_spare_slot_is_not(
    draw: Draw, dtype: torch.dtype, device: torch.device, patches: torch.Tensor
) -> None:
    index = torch.tensor([4, 5, 0, 5], device=device)
    ring, next_embed = draw(SLOTS, RING, PATCH, LATENT), draw(SLOTS, WIDTH)
    state, embeds = draw(4, PATCH, LATENT).float(), draw(4, WIDTH)
    lengths, before = torch.arange(SLOTS, device=device) * 10, patches.clone()
    old = ring.clone()
    store_patch(state, embeds, index, ring, next_embed, lengths, patches, PAST)
    for row, slot in ((0, 4), (2, 0)):
        entry = (int(before[slot]) + PAST) % RING
        assert torch.equal(ring[slot, entry], state[row].to(dtype))
        assert torch.equal(next_embed[slot], embeds[row])
        old[slot, entry] = ring[slot, entry]
    assert torch.equal(ring, old)
    assert (patches - before).tolist() == [1, 0, 0, 0, 1, 0]
    assert lengths.tolist() == [1, 10, 20, 30, 41, 50]


def test_noise_is_that_of_the_plain_rule(
    device: torch.device, dtype: torch.dtype, index: torch.Tensor
) -> None:
    seeds = torch.tensor([0, 1, -5, 2**62, -(2**63), 7], device=device)
    segments = torch.tensor([3, 0, 2**40 + 1, 1, -1, 0], device=device)
    patches = torch.tensor([0, 5, 999, 1, 2**31, 3], device=device)
    out = torch.empty(3, 4, 64, device=device)
    fill_slot_noise(seeds, segments, patches, index, out, out.to(dtype))
    chosen = seeds[index], segments[index], patches[index]
    expected = sample_gaussian(*chosen, 256).to(dtype).float().view(3, 4, 64)
    later, wanted = torch.full((3, 2, 4, 64), -1.0, device=device), torch.ones(6, device=device)
    wanted[int(index[1])] = 0
    fill_slot_noise(
        seeds, segments, patches, index, later, out.to(dtype), first=256, enabled=wanted
    )
    more = sample_gaussian(*chosen, 512, first=256).to(dtype).float().view(3, 2, 4, 64)
    more[1] = -1.0
    assert_close(later, more, 1e-6 if dtype == torch.float32 else 2**-7)
    # Equal but for the last bit where the two libraries round a logarithm or a sine differently.
    assert (out != expected).float().mean() < 0.01
    assert_close(out, expected, 1e-6 if dtype == torch.float32 else 2**-7)
