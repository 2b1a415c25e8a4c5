"""What the recipe packs is what the product loads and speaks with, instructed or not."""

import json
from pathlib import Path

import numpy as np
import pytest

from cookbook.ming_mini.layout import configurations
from cookbook.ming_mini.talker_init import new_talker
from cookbook.ming_mini.vae_init import new_vae
from cookbook.ming_mini.weights import save_pieces
from cookbook.ming_mini_2.voices import pack
from cookbook.ming_mini_2.voices.layout import VOICES
from cookbook.ming_mini_2.voices.speakers import PRESETS
from cookbook.ming_mini_2.voices.synthesize import Form
from sglang_omni.engines.runtime.worker import StepInput
from sglang_omni.engines.speech.contract import TalkerChunk, TalkerRequest, TalkerSettings
from sglang_omni.engines.speech.worker import TalkerWorker
from sglang_omni.models.capabilities import FILE, read_capabilities
from sglang_omni.models.ming.capabilities import RELEASED
from sglang_omni.models.ming.speech.model import MingSpeechModel
from sglang_omni.models.ming.speech.modules import load_modules
from sglang_omni.models.ming.speech_text import MingSpeechText
from sglang_omni.models.speech_text import SpeechStyle
from tests.cookbook.conftest import hum

MEGABYTE = 10**6


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A packed model with initial weights and hummed prompts."""
    weights, folder = tmp_path_factory.mktemp("weights"), tmp_path_factory.mktemp("mini")
    talker, vae = configurations(VOICES)
    save_pieces(new_talker(talker, 0).state_dict(), weights, "talker")
    save_pieces(new_vae(vae, 0).state_dict(), weights, "vae")
    (folder / FILE).write_text(json.dumps({"speech_instructions": False, "video_sound": True}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pack, "recording", _hummed)
        pack.pack(weights, folder, "free")
    return folder


def _hummed(name: str, text: str, form: Form) -> np.ndarray:
    return hum(1.0, 120 + 30 * len(name))


def test_talker_and_vae_take_28_megabytes(checkpoint: Path) -> None:
    sizes = [path.stat().st_size for path in (checkpoint / "talker").rglob("*.safetensors")]
    assert len(sizes) == 2
    assert 27 * MEGABYTE < sum(sizes) < 29 * MEGABYTE


def test_capabilities_of_speech_replace_those_of_the_checkpoint(checkpoint: Path) -> None:
    declared = read_capabilities(checkpoint, RELEASED)
    assert declared.speech_instructions
    assert declared.speech_languages == ("en",)
    assert declared.video_sound


@pytest.mark.parametrize("instructions", [None, {"speed": "slow"}])
def test_the_product_loads_and_speaks(
    checkpoint: Path, instructions: dict[str, str | None] | None
) -> None:
    settings = TalkerSettings(checkpoint, slots=1)
    model = load_modules(settings.checkpoint, settings.device, settings.dtype)
    assert list(model.voices) == [speaker.name for speaker in PRESETS]
    worker = TalkerWorker(MingSpeechModel(model), settings)
    style = MingSpeechText().style("speech", instructions) if instructions else SpeechStyle()
    request = TalkerRequest("Hello.", "joan", seed=1, max_patches=2, style=style)
    ((_, first),) = worker.step(StepInput(arrivals=(("one", request),)))
    ((_, second),) = worker.step(StepInput())
    assert isinstance(first, TalkerChunk)
    assert isinstance(second, TalkerChunk)
    assert second.last
    # A patch has four latents of seven frames.
    assert len(first.pcm) + len(second.pcm) <= 2 * 4 * 7 * 504
    assert np.isfinite(second.pcm).all()
