"""On a GPU the steps of both trainings are recorded, and learn what plain ones do."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from cookbook.ming_mini_2.image.conditions import FrozenThinker
from cookbook.ming_mini_2.image.configs import SMALL, LatentScale
from cookbook.ming_mini_2.image.drawing import PictureDrawer
from cookbook.ming_mini_2.image.examples import read_examples
from cookbook.ming_mini_2.image.layout import write_layout
from cookbook.ming_mini_2.image.prompts import PromptBuilder
from cookbook.ming_mini_2.image.store import StoreBuilder
from cookbook.ming_mini_2.image.train_vae import (
    PictureTable,
    VAESettings,
    VAETrainer,
    collect_pictures,
)
from cookbook.ming_mini_2.image.trainer import DrawingSettings, DrawingTrainer
from cookbook.ming_mini_2.image.vae import LatentCodec, new_vae

pytestmark = pytest.mark.gpu


def test_a_recorded_vae_learns_what_a_plain_one_does(example_files: Path) -> None:
    device, found = torch.device("cuda"), []
    table = PictureTable(collect_pictures(read_examples(example_files)), device)
    for record in (False, True):
        settings = VAESettings(batch=4, crop=32, whole=2, record=record)
        trainer = VAETrainer(SMALL, settings, table, device)
        reports = [trainer.train(progress) for progress in 12 * (0.0,) + 12 * (0.9,)]
        found.append([reports[-1][name].item() for name in ("absolute", "nats")])
    assert found[0] == pytest.approx(found[1], rel=2e-2)


def test_a_recorded_model_learns_what_a_plain_one_does(
    checkpoint: Path, example_files: Path, prompts: PromptBuilder, tmp_path: Path
) -> None:
    device, found = torch.device("cuda"), []
    write_layout(tmp_path, SMALL)
    thinker = FrozenThinker(checkpoint, device)
    codec = LatentCodec(new_vae(SMALL, seed=0).to(device), LatentScale(2.0, 0.1))
    builder = StoreBuilder(thinker, codec, PictureDrawer(device), prompts, device)
    kinds = read_examples(example_files)
    stores = {kind: builder.build(kind, arrays) for kind, arrays in kinds.items()}
    plain = DrawingSettings(read=4, draw=4, record=False, compile=False)
    for settings in (plain, replace(plain, record=True, compile=True)):
        trainer = DrawingTrainer(tmp_path, settings, thinker, stores, device)
        reading, drawing = ([trainer.train(share)[1] for _ in range(24)] for share in (0.0, 0.9))
        found.append([reading[-1]["unread"].item(), drawing[-1]["flow"].item()])
    assert found[0] == pytest.approx(found[1], rel=2e-2)
