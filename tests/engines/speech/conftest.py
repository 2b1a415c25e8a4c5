"""The tiny talker, and the plain reference loop that the slotted engine is held to."""

from itertools import count

import pytest
import torch

from sglang_omni.engines.speech.contract import TalkerSettings
from sglang_omni.engines.speech.worker import TalkerWorker
from sglang_omni.models.ming.speech.cfm import Sampling
from sglang_omni.models.ming.speech.model import MingSpeechModel
from sglang_omni.models.ming.speech.modules import load_modules
from sglang_omni.models.ming.speech.prompt import SpeechPrompt, build_initial_history, embed_prompt
from sglang_omni.models.ming.speech.talker import generate
from tests.testing.golden import TINY

# The tiny talker stops at once; where a length matters the stop rule is put out of reach.
NEVER_STOP = 10_000


@pytest.fixture(scope="session")
def model():
    """All modules of the tiny checkpoint in float32 on the CPU."""
    return load_modules(TINY)


@pytest.fixture
def make_worker(model):
    """Builds a worker on the shared modules; `over` replaces its executor or clock."""

    def build(over=None, **changes):
        settings = TalkerSettings(TINY, **{"min_patches": NEVER_STOP} | changes)
        return TalkerWorker(MingSpeechModel(model), settings, **over or {})

    return build


@pytest.fixture(scope="session")
def prompt_parts(model):
    """Prompt embeddings [length, hidden] and history of a text in the first voice."""

    def build(text):
        voice = model.voices["DB30"]
        ids = model.tokenizer.assemble(
            SpeechPrompt(text, prompt_text=voice.text, prompt_patches=len(voice.embeds), speakers=1)
        )
        embeddings = embed_prompt(model.talker, ids, voice.speaker[None], voice.embeds)
        return embeddings, build_initial_history(model.talker, voice.latents)

    return build


@pytest.fixture(scope="session")
def reference(model, prompt_parts):
    """Runs the plain loop: the patches of a text for a seed and segment."""

    def run(text, seed, segment, patches, min_patches=NEVER_STOP):
        how = Sampling()
        row = [torch.tensor([value]) for value in (seed, segment)]
        noise = (model.talker.sample_patch_noise(*row, torch.tensor([p]), how) for p in count())
        limits = {"min_patches": min_patches, "max_patches": patches}
        with torch.inference_mode():
            return list(generate(model.talker, *prompt_parts(text), noise, **limits, sampling=how))

    return run
