"""A tiny checkpoint whose thinker cannot draw yet, and examples for its tokenizer."""

import shutil
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest
import torch

from cookbook.ming_mini_2.image.conditions import FrozenThinker
from cookbook.ming_mini_2.image.configs import SMALL, LatentScale, num_queries
from cookbook.ming_mini_2.image.drawing import PictureDrawer
from cookbook.ming_mini_2.image.examples import (
    TASKS,
    DrawnExample,
    Task,
    stream_examples,
    write_examples,
)
from cookbook.ming_mini_2.image.prompts import PromptBuilder, open_prompts
from cookbook.ming_mini_2.image.store import StoreBuilder
from cookbook.ming_mini_2.image.vae import LatentCodec, new_vae
from cookbook.ming_mini_2.thinker.excluded import Excluded
from sglang_omni.models.ming.image import config
from sglang_omni.models.ming.tiny import write_tiny_checkpoint

CPU = torch.device("cpu")
NOTHING = Excluded(frozenset())
Take = Callable[[Task, int], list[DrawnExample]]


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    write_tiny_checkpoint(folder)
    folders = (config.HEAD, config.CONNECTOR, config.TRANSFORMER, config.VAE, config.SCHEDULER)
    for name in (*folders, config.GLYPHS):
        shutil.rmtree(folder / name)
    return folder


@pytest.fixture(scope="session")
def prompts(checkpoint: Path) -> PromptBuilder:
    return open_prompts(checkpoint, num_queries(SMALL))


@pytest.fixture(scope="session")
def thinker(checkpoint: Path) -> FrozenThinker:
    return FrozenThinker(checkpoint, CPU)


@pytest.fixture(scope="session")
def builder(thinker: FrozenThinker, prompts: PromptBuilder) -> StoreBuilder:
    codec = LatentCodec(new_vae(SMALL, seed=0), LatentScale(2.0, 0.1))
    return StoreBuilder(thinker, codec, PictureDrawer(CPU), prompts, CPU)


@pytest.fixture(scope="session")
def take() -> Take:
    """Examples of a task for training; equal counts give equal examples."""

    def take(task: Task, count: int) -> list[DrawnExample]:
        return list(islice(stream_examples(task, "tests", "train", NOTHING), count))

    return take


@pytest.fixture(scope="session")
def example_files(
    tmp_path_factory: pytest.TempPathFactory, prompts: PromptBuilder, take: Take
) -> Path:
    """A folder of examples of both tasks."""
    folder = tmp_path_factory.mktemp("examples")
    for task in TASKS:
        write_examples(folder, "train_0", task, iter(take(task, 12)), 12, prompts)
    return folder
