"""The two ends of the inverse STFT against the plain module."""

import torch

from sglang_omni.models.ming.speech.kernels.vocoder import (
    compute_spectrum,
    overlap_add,
    upsample_patch,
)
from sglang_omni.models.ming.speech.vae import ISTFT, upsample
from sglang_omni.models.ming.speech.vae_slots import compute_unit_envelopes
from tests.engines.speech.fast.conftest import Draw
from tests.testing.golden import assert_close

HOP, FRAMES = 22, 4


def test_spectra_of_log_magnitudes_and_phases(draw: Draw, tolerance: float) -> None:
    bins = 2 * HOP + 1
    x = draw(3, 2 * bins + 6)
    x[0, 0] = 9.0
    out = compute_spectrum(x, bins, 100.0)
    magnitude, phase = x[:, :bins].float().exp().clamp_max(100), x[:, bins : 2 * bins].float()
    expected = torch.polar(magnitude, phase)
    assert_close(torch.view_as_real(out), torch.view_as_real(expected), 1e-5)


def test_units_of_slots_join_to_the_whole_signal(device: torch.device) -> None:
    istft = ISTFT(HOP).to(device)
    envelopes = compute_unit_envelopes(istft, FRAMES)
    carry = torch.full((3, 2, istft.size - HOP), torch.nan, device=device)
    signals = torch.randn(2, 5 * FRAMES, istft.size, generator=torch.Generator().manual_seed(0))
    signals = signals.to(device)
    whole = istft(signals * istft.window)
    index, heard = torch.tensor([2, 0], device=device), []
    for unit in range(5):
        frames = signals[:, unit * FRAMES : (unit + 1) * FRAMES].contiguous()
        patches = torch.tensor([unit, unit], device=device)
        out = overlap_add(frames, istft.window, envelopes, carry, index, patches)
        full = FRAMES * HOP
        heard.append(out[:, istft.crop if unit == 0 else 0 : None if unit == 4 else full])
    assert_close(torch.cat(heard, dim=1), whole, 1e-5)


def test_patches_are_stretched_between_their_neighbours(
    draw: Draw, device: torch.device, tolerance: float
) -> None:
    """A stream of three patches in a ring of five, whose first history entry is 2."""
    ring, past, factor = draw(3, 5, 4, 16), 2, 4
    stream = torch.stack([ring[1, (number + past) % 5] for number in range(3)]).flatten(0, 1)
    expected = upsample(stream[None].float(), factor)[0].unflatten(0, (3, -1))
    index = torch.ones(3, dtype=torch.int64, device=device)
    patches, final = torch.tensor([[0, 1, 2], [0, 0, 1]], device=device)
    out = upsample_patch(ring, index, patches, final, factor, past)
    assert_close(out.float(), expected, tolerance)
