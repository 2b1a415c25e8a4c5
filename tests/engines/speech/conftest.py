"""The tiny talker, and the plain reference loop that the slotted engine is held to."""

from collections.abc import Callable
from itertools import count
from typing import Any, Protocol

import pytest
import torch

from sglang_omni.engines.speech.contract import TalkerSettings
from sglang_omni.engines.speech.worker import TalkerWorker
from sglang_omni.models.ming.speech.cfm import Sampling
from sglang_omni.models.ming.speech.model import MingSpeechModel
from sglang_omni.models.ming.speech.modules import SpeechModules, load_modules
from sglang_omni.models.ming.speech.prompt import SpeechPrompt, build_initial_history, embed_prompt
from sglang_omni.models.ming.speech.talker import Patch, generate
from tests.testing.golden import TINY

# The tiny talker stops at once; where a length matters the stop rule is put out of reach.
NEVER_STOP = 10_000

MakeWorker = Callable[..., TalkerWorker]
PromptParts = Callable[[str], tuple[torch.Tensor, torch.Tensor]]


class Reference(Protocol):
    """Returns the patches of a text by the plain loop."""

    def __call__(
        self, text: str, seed: int, segment: int, patches: int, min_patches: int = NEVER_STOP
    ) -> list[Patch]: ...


@pytest.fixture(scope="session")
def model() -> SpeechModules:
    """All modules of the tiny checkpoint in float32 on the CPU."""
    return load_modules(TINY)


@pytest.fixture
def make_worker(model: SpeechModules) -> MakeWorker:
    """Builds a worker on the shared modules; `over` replaces its executor or clock."""

    def build(over: dict[str, Any] | None = None, **changes: Any) -> TalkerWorker:
        settings = TalkerSettings(TINY, **{"min_patches": NEVER_STOP} | changes)
        return TalkerWorker(MingSpeechModel(model), settings, **over or {})

    return build


@pytest.fixture(scope="session")
def prompt_parts(model: SpeechModules) -> PromptParts:
    """Prompt embeddings [length, hidden] and history of a text in the first voice."""

    def build(text: str) -> tuple[torch.Tensor, torch.Tensor]:
        voice = model.voices["DB30"]
        ids = model.tokenizer.assemble(
            SpeechPrompt(text, prompt_text=voice.text, prompt_patches=len(voice.embeds), speakers=1)
        )
        assert voice.speaker is not None
        embeddings = embed_prompt(model.talker, ids, voice.speaker[None], voice.embeds)
        return embeddings, build_initial_history(model.talker, voice.latents)

    return build


@pytest.fixture(scope="session")
def reference(model: SpeechModules, prompt_parts: PromptParts) -> Reference:
    """Runs the plain loop: the patches of a text for a seed and segment."""

    def run(
        text: str, seed: int, segment: int, patches: int, min_patches: int = NEVER_STOP
    ) -> list[Patch]:
        how = Sampling()
        row = torch.tensor([seed]), torch.tensor([segment])
        noise = (model.talker.sample_patch_noise(*row, torch.tensor([p]), how) for p in count())
        with torch.inference_mode():
            made = generate(
                model.talker,
                *prompt_parts(text),
                noise,
                min_patches=min_patches,
                max_patches=patches,
                sampling=how,
            )
            return list(made)

    return run
