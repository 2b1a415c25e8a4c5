"""What the VAE learns by: its losses, eager and compiled."""

from collections import Counter

import pytest
import torch
from torch import Tensor

from cookbook.ming_mini.compilation import Compiled, Runner, run_eager
from cookbook.ming_mini.discriminators import (
    Discriminators,
    adversarial_loss,
    discriminator_loss,
    feature_loss,
)
from cookbook.ming_mini.losses import SpectralLoss

Counts = dict[str, Counter[str]]
SIZES = (256,)
SAMPLES = 4096


def gradients(run: Runner) -> list[Tensor]:
    """Return the losses of a step, and their gradients on the sound and on the discriminators."""
    random = torch.Generator().manual_seed(0)
    real = torch.rand(2, SAMPLES, generator=random) - 0.5
    made = (real + 0.05 * torch.randn(real.shape, generator=random)).requires_grad_()
    torch.manual_seed(0)
    discriminators = Discriminators(SIZES, channels=4, run=run)
    spectral = SpectralLoss(resolutions=[(size, 20) for size in SIZES], run=run)
    mel, magnitude = spectral(made, real)
    judged = discriminator_loss(discriminators(real), discriminators(made.detach()))
    discriminators.requires_grad_(False)
    seen = discriminators(made)
    with torch.no_grad():
        wanted = discriminators(real)
    discriminators.requires_grad_(True)
    fooled, alike = adversarial_loss(seen), run(feature_loss, wanted, seen)
    losses = [mel, magnitude, judged, fooled, alike]
    sum(losses).backward()
    assert made.grad is not None
    learnt = [one.grad for one in discriminators.parameters() if one.grad is not None]
    assert len(learnt) == len(list(discriminators.parameters()))
    return [*(loss.detach() for loss in losses), made.grad, *learnt]


def test_equal_sounds_have_no_distance() -> None:
    sound = torch.rand(1, SAMPLES) - 0.5
    mel, magnitude = SpectralLoss(resolutions=[(256, 20)])(sound, sound)
    assert mel.item() == magnitude.item() == 0
    quieter = SpectralLoss(resolutions=[(256, 20)])(0.5 * sound, sound)[0]
    # Log magnitudes differ by that factor wherever there is sound.
    assert quieter.item() == pytest.approx(torch.tensor(2.0).log().item(), rel=0.02)


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> Counts:
    """PyTorch's counts of what it compiles, from now on."""
    # Who imports SGLang for a CPU in this process sets it.
    monkeypatch.delenv("TORCHDYNAMO_DISABLE", raising=False)
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    return torch._dynamo.utils.counters


def test_compiled_losses_are_the_same(compilations: Counts) -> None:
    compiled = gradients(Compiled(dynamic=False, backend="aot_eager"))
    assert compilations["stats"]["unique_graphs"] > 0
    assert not compilations["graph_break"]
    torch.testing.assert_close(compiled, gradients(run_eager))


def test_a_function_is_compiled_for_more_shapes_than_pytorch_would(compilations: Counts) -> None:
    run = Compiled(dynamic=False, backend="eager")
    for size in range(2, 14):
        run(torch.square, torch.ones(size))
    assert compilations["stats"]["unique_graphs"] == 12
