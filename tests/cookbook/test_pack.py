"""What the recipe packs is what the product loads and speaks with."""

from pathlib import Path

import numpy as np
import pytest
import torch

from cookbook.ming_mini import pack
from cookbook.ming_mini.layout import configurations
from cookbook.ming_mini.speakers import PRESETS, Speaker
from cookbook.ming_mini.talker_init import new_talker
from cookbook.ming_mini.vae_init import new_vae
from cookbook.ming_mini.weights import save_pieces
from sglang_omni.engines.runtime.worker import StepInput
from sglang_omni.engines.speech.contract import TalkerChunk, TalkerRequest, TalkerSettings
from sglang_omni.engines.speech.worker import TalkerWorker
from sglang_omni.models.ming.speech.model import MingSpeechModel
from sglang_omni.models.ming.speech.modules import load_modules
from tests.cookbook.conftest import hum

MEGABYTE = 2**20


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A packed model with starting weights and hummed prompts."""
    folder = tmp_path_factory.mktemp("mini")
    talker, vae = configurations()
    save_pieces(new_talker(talker, 0).state_dict(), folder / "..", "talker")
    save_pieces(new_vae(vae, 0).state_dict(), folder / "..", "vae")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pack, "recording", _hummed)
        pack.pack(folder / "..", folder)
    return folder


def _hummed(text: str, speaker: Speaker) -> np.ndarray:
    return hum(1.0, 120 + 30 * len(speaker.name))


def test_the_packed_files_are_small(checkpoint: Path) -> None:
    talker = checkpoint / "talker"
    assert (talker / "model.safetensors").stat().st_size < 13 * MEGABYTE
    assert (talker / "vae" / "model.safetensors").stat().st_size < 10 * MEGABYTE


def test_the_product_loads_and_speaks_with_the_packed_model(checkpoint: Path) -> None:
    settings = TalkerSettings(checkpoint, slots=1)
    model = load_modules(settings.checkpoint, settings.device, settings.dtype)
    assert list(model.voices) == list(pack.PROMPTS)
    assert set(model.voices) == {speaker.name for speaker in PRESETS}
    worker = TalkerWorker(MingSpeechModel(model), settings)
    request = TalkerRequest("Hello.", "slt", seed=1, max_patches=2)
    ((_, first),) = worker.step(StepInput(arrivals=(("one", request),)))
    ((_, second),) = worker.step(StepInput())
    assert isinstance(first, TalkerChunk)
    assert isinstance(second, TalkerChunk)
    assert not first.last
    assert second.last
    assert np.isfinite(second.pcm).all()


def test_weights_survive_packing_as_bf16(checkpoint: Path) -> None:
    model = load_modules(checkpoint)
    wanted = new_talker(model.talker.config, 0).state_dict()
    for name, tensor in model.talker.state_dict().items():
        assert torch.equal(tensor, wanted[name].bfloat16().float()), name
