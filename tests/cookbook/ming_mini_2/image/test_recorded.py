"""On a GPU the steps of both trainings are compiled and recorded, and learn what plain ones do."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from cookbook.ming_mini.compilation import Runner, choose_runner, run_eager
from cookbook.ming_mini_2.image.conditions import FrozenThinker
from cookbook.ming_mini_2.image.configs import MINI, SMALL, LatentScale
from cookbook.ming_mini_2.image.drawing import PictureDrawer
from cookbook.ming_mini_2.image.examples import read_examples
from cookbook.ming_mini_2.image.flow import flow_loss
from cookbook.ming_mini_2.image.layout import write_layout
from cookbook.ming_mini_2.image.model import new_drawing_model
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
from cookbook.ming_mini_2.image.velocity import VelocityModel

pytestmark = pytest.mark.gpu
STEPS = 12


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


@pytest.mark.parametrize("edits", [False, True])
def test_compiled_gradients_are_eager_ones_at_the_size_that_is_trained(
    edits: bool, tmp_path: Path
) -> None:
    device, examples = torch.device("cuda"), 64
    write_layout(tmp_path, MINI)
    transformer = new_drawing_model(tmp_path, 64, seed=0).to(device).transformer
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in transformer.parameters():
            # Its blocks begin as identities, through which no gradient flows.
            parameter.add_(0.02 * torch.randn_like(parameter))
    pictures = torch.randn(2, examples, 16, 32, 32, device=device)
    rows = torch.nn.functional.normalize(torch.randn(examples, 64, 128, device=device), dim=-1)

    def gradients(run: Runner, seed: int) -> dict[str, Tensor]:
        transformer.zero_grad(set_to_none=True)
        random = torch.Generator(device).manual_seed(seed)
        predict = VelocityModel(transformer, run).predict
        with torch.autocast("cuda", torch.bfloat16):
            flow_loss(predict, pictures[0], rows, pictures[1] if edits else None, random).backward()
        named = transformer.named_parameters()
        return {name: one.grad.clone() for name, one in named if one.grad is not None}

    # A first step may be right by chance, in memory that is still new.
    compiled_run = choose_runner(True, device)
    for seed in range(STEPS):
        plain, compiled = gradients(run_eager, seed), gradients(compiled_run, seed)
        assert plain.keys() == compiled.keys()
        for name, wanted in plain.items():
            assert (compiled[name] - wanted).norm() <= 0.1 * wanted.norm(), (seed, name)
