"""What the VAE learns by: its losses, eager and compiled."""

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

SIZES = (256, 512)
SAMPLES = 4096


def gradients(run: Runner) -> list[Tensor]:
    """Return the losses of a step, and their gradients on the sound and on the discriminators."""
    random = torch.Generator().manual_seed(0)
    real = torch.rand(2, SAMPLES, generator=random) - 0.5
    made = (real + 0.05 * torch.randn(real.shape, generator=random)).requires_grad_()
    torch.manual_seed(0)
    judges = Discriminators(SIZES, channels=4, run=run)
    spectral = SpectralLoss(resolutions=[(size, 20) for size in SIZES], run=run)
    mel, magnitude = spectral(made, real)
    judged = discriminator_loss(judges(real), judges(made.detach()))
    judges.requires_grad_(False)
    seen = judges(made)
    with torch.no_grad():
        wanted = judges(real)
    judges.requires_grad_(True)
    fooled, alike = adversarial_loss(seen), run(feature_loss, wanted, seen)
    losses = [mel, magnitude, judged, fooled, alike]
    sum(losses).backward()
    assert made.grad is not None
    learnt = [one.grad for one in judges.parameters() if one.grad is not None]
    assert len(learnt) == len(list(judges.parameters()))
    return [*(loss.detach() for loss in losses), made.grad, *learnt]


def test_equal_sounds_have_no_distance() -> None:
    sound = torch.rand(1, SAMPLES) - 0.5
    mel, magnitude = SpectralLoss(resolutions=[(256, 20)])(sound, sound)
    assert mel.item() == magnitude.item() == 0
    quieter = SpectralLoss(resolutions=[(256, 20)])(0.5 * sound, sound)[0]
    # Log magnitudes differ by that factor wherever there is sound.
    assert quieter.item() == pytest.approx(torch.tensor(2.0).log().item(), rel=0.02)


@pytest.mark.long
def test_compiled_losses_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    # Who imports SGLang for a CPU in this process sets it.
    monkeypatch.delenv("TORCHDYNAMO_DISABLE", raising=False)
    torch._dynamo.reset()
    compiled = gradients(Compiled(dynamic=False, backend="aot_eager"))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] > 0
    assert not torch._dynamo.utils.counters["graph_break"]
    torch.testing.assert_close(compiled, gradients(run_eager))
