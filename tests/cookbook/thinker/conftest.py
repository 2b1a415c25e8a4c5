"""A small thinker, a handful of words and a made-up synthesizer.

Only fonts must be there: those of Debian's `fonts-dejavu`, or matplotlib's.
"""

import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch

from cookbook.ming_mini.lexicon import Lexicon
from cookbook.ming_mini.speakers import PRESETS, Speaker
from cookbook.ming_mini.thinker.configs import SMALL
from cookbook.ming_mini.thinker.layout import learn_tokenizer, write_layout
from cookbook.ming_mini.thinker.library import Library
from cookbook.ming_mini.thinker.make import ShardMaker, make_shard
from cookbook.ming_mini.thinker.model import TrainableThinker, new_thinker
from cookbook.ming_mini.thinker.scenes import SYSTEM_FONTS
from cookbook.ming_mini.thinker.tasks import KINDS
from cookbook.ming_mini.thinker.train import new_library
from cookbook.ming_mini.vocoder import RATE
from sglang_omni.models.ming.prompt.tokenizer import ThinkerTokenizer

LEXICON = Lexicon(
    nouns=("apple", "city", "glass", "river", "hour", "table", "window", "house"),
    verbs=("carry", "find", "watch", "have"),
    adjectives=("old", "green", "easy"),
    adverbs=("soon", "often"),
    phrases=("a walk in the park", "he carried the old box home", "look at the river!"),
)
CPU = torch.device("cpu")


def hum(text: str, speaker: Speaker) -> np.ndarray:
    """A tone for every word: float32 at 44.1 kHz."""
    time = np.arange(RATE // 5) / RATE
    pitches = [100 + hashlib.sha256(word.encode()).digest()[0] * 4 for word in text.split()]
    tones = [0.1 * np.sin(2 * np.pi * pitch * time) for pitch in pitches]
    return np.concatenate(tones).astype(np.float32)


@pytest.fixture(scope="session", autouse=True)
def fonts() -> None:
    if not SYSTEM_FONTS.is_dir():
        pytest.importorskip("matplotlib", reason="no fonts to draw with")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The layout of a small thinker."""
    path = tmp_path_factory.mktemp("layout")
    write_layout(path, learn_tokenizer(LEXICON, sampled=200), SMALL)
    return path


@pytest.fixture(scope="session")
def tokenizer(folder: Path) -> ThinkerTokenizer:
    return ThinkerTokenizer(folder)


@pytest.fixture(scope="session")
def workshop(tokenizer: ThinkerTokenizer) -> ShardMaker:
    return ShardMaker(tokenizer, LEXICON, "train", PRESETS, hum)


@pytest.fixture
def thinking(folder: Path) -> TrainableThinker:
    """A new model, whose routers are biased as if they had learnt."""
    model = new_thinker(folder, seed=0)
    generator = torch.Generator().manual_seed(1)
    for layer in model.sparse_layers():
        for router in (layer.gate, layer.image_gate, layer.audio_gate):
            router.expert_bias.normal_(std=0.05, generator=generator)
    return model


@pytest.fixture
def library(folder: Path, thinking: TrainableThinker, workshop: ShardMaker) -> Library:
    """A few examples of every kind."""
    found = new_library(folder, thinking, CPU, seed=0)
    for kind in KINDS:
        found.add(kind, make_shard(workshop, kind, "library", 12))
    return found
