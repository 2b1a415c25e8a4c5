"""Small models and made-up recordings for the recipe's tests; no synthesizer is needed."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from cookbook.ming_mini.corpus import Chunk
from cookbook.ming_mini.layout import configurations
from cookbook.ming_mini.talker_init import new_talker
from cookbook.ming_mini.train_talker import mini_tokenizer
from cookbook.ming_mini.vae_init import new_vae
from cookbook.ming_mini.vocoder import RATE
from sglang_omni.models.ming.config import TalkerConfig, VAEConfig
from sglang_omni.models.ming.speech.prompt import PromptTokenizer
from sglang_omni.models.ming.speech.talker import Talker
from sglang_omni.models.ming.speech.vae import AudioVAE


@pytest.fixture(scope="session")
def small_configs() -> tuple[TalkerConfig, VAEConfig]:
    """The mini configurations, narrower."""
    talker, vae = configurations()
    llm = replace(talker.llm, hidden_size=64, intermediate_size=96, num_hidden_layers=3)
    flow = replace(talker.flow, hidden_size=48, depth=2, num_heads=2)
    aggregator = replace(talker.aggregator, hidden_size=32, depth=1, num_heads=2)
    sides = [
        replace(side, backbone=replace(side.backbone, hidden_size=64, intermediate_size=64))
        for side in (vae.encoder, vae.decoder)
    ]
    small_vae = replace(vae, encoder=sides[0], decoder=sides[1])
    return replace(talker, llm=llm, flow=flow, aggregator=aggregator), small_vae


@pytest.fixture
def small_vae(small_configs: tuple[TalkerConfig, VAEConfig]) -> AudioVAE:
    return new_vae(small_configs[1], seed=0)


@pytest.fixture
def small_talker(small_configs: tuple[TalkerConfig, VAEConfig]) -> Talker:
    return new_talker(small_configs[0], seed=0)


@pytest.fixture(scope="session")
def tokenizer() -> PromptTokenizer:
    return mini_tokenizer()


@pytest.fixture
def chunk() -> Chunk:
    """Four clips of hums, 0.4 to 2.1 seconds, by two speakers."""
    seconds = (0.4, 1.2, 1.7, 2.1)
    hums = [hum(length, 110 * (1 + number)) for number, length in enumerate(seconds)]
    offsets = np.concatenate(([0], np.cumsum([len(one) for one in hums])))
    texts = ("Hi.", "Good morning.", "Three red circles.", "The cat is on the mat.")
    return Chunk(np.concatenate(hums), offsets, np.array([0, 0, 1, 1]), texts)


def hum(seconds: float, hertz: float) -> np.ndarray:
    """A tone with harmonics, int16."""
    time = np.arange(int(seconds * RATE)) / RATE
    wave = np.sum([np.sin(2 * np.pi * hertz * k * time) / k for k in range(1, 6)], axis=0)
    return (wave * 3000).astype(np.int16)


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)
