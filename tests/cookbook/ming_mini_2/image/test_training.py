"""The recipe from start to end with a small model: it learns, continues, packs, and draws."""

import json
import os
import re
import subprocess
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from cookbook.ming_mini.schedule import Rate
from cookbook.ming_mini_2.image import train, train_vae
from cookbook.ming_mini_2.image.conditions import FrozenThinker, compute_rows
from cookbook.ming_mini_2.image.configs import SMALL
from cookbook.ming_mini_2.image.drawing import PictureDrawer, draw_picture
from cookbook.ming_mini_2.image.evaluate import find_failures
from cookbook.ming_mini_2.image.examples import encode_examples, read_examples
from cookbook.ming_mini_2.image.flow import DrawingPlan, draw_latents
from cookbook.ming_mini_2.image.held_out import held_out_examples
from cookbook.ming_mini_2.image.labels import CLASSES
from cookbook.ming_mini_2.image.layout import write_layout
from cookbook.ming_mini_2.image.pack import pack
from cookbook.ming_mini_2.image.prompts import PromptBuilder
from cookbook.ming_mini_2.image.store import StoreBuilder
from cookbook.ming_mini_2.image.train_vae import (
    PictureTable,
    VAESettings,
    VAETrainer,
    choose_corners,
    collect_pictures,
    load_vae,
    read_scale,
)
from cookbook.ming_mini_2.image.trainer import (
    DrawingSettings,
    DrawingTrainer,
    load_drawing_model,
)
from cookbook.ming_mini_2.image.vae import LatentCodec
from cookbook.ming_mini_2.image.velocity import VelocityModel
from sglang_omni.models.image import ImageInput
from sglang_omni.models.ming.family import FAMILY
from sglang_omni.models.ming.image.schedule import read_scheduler_config
from tests.cookbook.ming_mini_2.image.conftest import CPU, Take

RECIPE = Path(train.__file__).with_name("recipe.sh")


@pytest.fixture(scope="module")
def trained(
    checkpoint: Path, example_files: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A folder with a VAE and a model, trained for a moment, and the packed checkpoint."""
    folder = tmp_path_factory.mktemp("trained")
    common = ["--examples", str(example_files), "--sizes", "small", "--device", "cpu"]
    vae = [*common, "--output", str(folder / "vae"), "--batch", "2", "--crop", "32", "--whole", "1"]
    vae += ["--measured", "4"]
    train_vae.main([*vae, "--seconds", "0.5"])
    drawing = [
        *(*common, "--output", str(folder / "drawing"), "--vae", str(folder / "vae")),
        *("--checkpoint", str(checkpoint), "--tested", "1", "--reading-until", "0.5"),
        *("--read", "2", "--draw", "2", "--edits", "0.5", "--peak", "1e-3"),
    ]
    with pytest.raises(SystemExit) as paused:
        train.main([*drawing, "--seconds", "1", "--pause", "0.4"])
    assert paused.value.code == 3
    train.main([*drawing, "--seconds", "1"])
    return folder


def round_weights(module: nn.Module) -> None:
    """Round weights as a checkpoint stores them."""
    rounded = {name: one.bfloat16().float() for name, one in module.state_dict().items()}
    module.load_state_dict(rounded)


@pytest.mark.extended
def test_a_second_call_goes_on_and_tests_what_it_trained(trained: Path) -> None:
    state = torch.load(trained / "drawing" / "drawing.pt", weights_only=True)
    assert state["spent"] >= 1
    assert state["step"] >= 2
    report = json.loads((trained / "drawing" / "held_out.json").read_text())
    assert {"draw", "edit"} <= set(report)
    assert (trained / "drawing" / "held_out.png").stat().st_size > 0


@pytest.mark.extended
def test_the_packed_model_draws_what_the_training_draws(
    trained: Path, checkpoint: Path, prompts: PromptBuilder, take: Take
) -> None:
    size = pack(trained / "drawing", trained / "vae", SMALL, checkpoint)
    assert size < 2_000_000
    stored = load_file(checkpoint / "mlp" / "model.safetensors")
    assert stored["query_tokens_dict.2x2"].dtype == torch.bfloat16
    assert FAMILY.capabilities(checkpoint).image_output
    # Both with the weights as they are stored.
    thinker, scale = FrozenThinker(checkpoint, CPU), read_scale(trained / "vae")
    weights = trained / "drawing"
    model = load_drawing_model(weights / "layout", weights, thinker.width, CPU)
    model.load_state_dict(
        {name: one.bfloat16().float() for name, one in model.state_dict().items()}
    )
    vae = load_vae(trained / "vae", SMALL, CPU)
    round_weights(vae)
    builder = StoreBuilder(thinker, LatentCodec(vae, scale), PictureDrawer(CPU), prompts, CPU)
    product = FAMILY.load_image_model(checkpoint, "cpu", "float32")
    scheduler = read_scheduler_config(checkpoint)
    for example in (take("draw", 1)[0], take("edit", 1)[0]):
        ((kind, arrays),) = encode_examples([example], prompts).items()
        store = builder.build(kind, arrays)
        prompt = store.select_prompts(torch.arange(1)).prompts
        batch = store.select_pictures(torch.arange(1))
        with torch.no_grad():
            states = thinker.think(prompt, model.queries)[0].numpy()
            rows = compute_rows(model, thinker, prompt)
        predict, how = VelocityModel(model.transformer).predict, DrawingPlan(scheduler, 4, 2.0, 7)
        latents = draw_latents(predict, rows, batch.reference, tuple(batch.target.shape), how)
        ours = builder.codec.decode(latents)[0].round().numpy()
        source = None if example.source is None else draw_picture(example.source)
        given = ImageInput(states, "", example.target.size, None, 256, 4, 2.0, 7, source)
        image = product.start(given)
        for _ in range(product.progress(image)[1]):
            product.advance([image])
        drawn = product.finish(image)
        assert drawn.shape == (*example.target.size, 3)
        # Reference latents are kept in bfloat16 by the training.
        assert np.abs(drawn.astype(int) - ours).max() <= (1 if source is None else 6)


def test_a_part_of_a_picture_is_what_is_there(example_files: Path) -> None:
    table = PictureTable(collect_pictures(read_examples(example_files)), CPU)
    index, size = torch.arange(3), (256, 256)
    corners = choose_corners(size, (96, 80), 3, torch.Generator().manual_seed(1))
    parts = table.draw_parts(size, index, corners, (96, 80))
    for picture, part, (y, x) in zip(table.draw(size, index), parts, corners, strict=True):
        assert torch.equal(picture[y : y + 96, x : x + 80], part)
    assert parts.std() > 1
    assert choose_corners(size, size, 3, torch.Generator()).abs().max() == 0


@pytest.mark.extended
def test_the_vae_learns_pictures(example_files: Path) -> None:
    table = PictureTable(collect_pictures(read_examples(example_files)), CPU)
    settings = VAESettings(batch=4, crop=32, whole=1, rate=Rate(5e-3, 1e-4, 10))
    trainer = VAETrainer(SMALL, settings, table, CPU)
    first = trainer.train(0.0)["absolute"].item()
    last = [trainer.train(0.3)["absolute"].item() for _ in range(40)][-10:]
    whole = trainer.train(0.5)["absolute"].item()
    assert np.mean(last) < 0.7 * first
    assert whole < first


@pytest.mark.extended
def test_the_model_learns_to_read_and_then_to_draw(
    builder: StoreBuilder, thinker: FrozenThinker, take: Take, tmp_path: Path
) -> None:
    write_layout(tmp_path, SMALL)
    arrays = encode_examples(take("draw", 6), builder.prompts)
    stores = {kind: builder.build(kind, part) for kind, part in arrays.items()}
    settings = DrawingSettings(read=4, draw=4, rate=Rate(1e-2, 1e-3, 5), reading_until=0.5)
    trainer = DrawingTrainer(tmp_path, settings, thinker, stores, CPU)
    transformer = "transformer.layers.0.feed_forward.w1.weight"

    def learn(progress: float) -> tuple[list[float], dict[str, Tensor]]:
        reports = [trainer.train(progress)[1] for _ in range(25)]
        name = "unread" if progress < 0.5 else "flow"
        state = {key: one.clone() for key, one in trainer.model.state_dict().items()}
        return [report[name].item() for report in reports], state

    start = {key: one.clone() for key, one in trainer.model.state_dict().items()}
    unread, read = learn(0.1)
    flow, drew = learn(0.6)
    assert np.mean(unread[-5:]) < 0.6 * unread[0]
    assert np.mean(flow[-5:]) < 0.95 * flow[0]
    assert (read["queries"] - start["queries"]).abs().max() > 1e-3
    assert torch.equal(read[transformer], start[transformer])
    assert (drew[transformer] - read[transformer]).abs().max() > 1e-3
    # What reads has its averaged weights from then on, which are those that are packed.
    for name in ("queries", "reader.read.weight"):
        torch.testing.assert_close(drew[name], trainer.average.tensors[name])
    assert all(parameter.grad is None for parameter in thinker.thinker.parameters())


def test_a_share_of_a_run_belongs_to_a_stage() -> None:
    settings = DrawingSettings(reading_until=0.25)
    assert settings.stage(0.0) == ("read", 0.0)
    assert settings.stage(0.125) == ("read", 0.5)
    assert settings.stage(0.25) == ("draw", 0.0)
    assert settings.stage(1.0) == ("draw", 1.0)
    assert DrawingSettings(reading_until=0.0).stage(0.0) == ("draw", 0.0)


def test_labels_say_the_content(take: Take, prompts: PromptBuilder) -> None:
    for arrays in encode_examples(take("draw", 80), prompts).values():
        assert arrays.labels.shape[1] == len(CLASSES)
        assert (arrays.labels < np.array(CLASSES)).all()
        assert len(np.unique(arrays.labels, axis=0)) > 1


def test_held_out_examples_are_the_same_each_time() -> None:
    assert held_out_examples("edit", 3) == held_out_examples("edit", 5)[:3]


def test_a_share_below_its_bound_fails() -> None:
    assert find_failures({"right": {"draw": 0.9, "edit": 0.9}}) == []
    assert find_failures({"right": {"draw": 0.9, "edit": 0.1}}) == ["edit: 0.1 is below 0.7"]


def test_the_recipe_names_what_is_missing(tmp_path: Path) -> None:
    def run(**settings: str) -> "subprocess.CompletedProcess[str]":
        environment = {**os.environ, **settings}
        return subprocess.run(
            ["bash", str(RECIPE)], env=environment, capture_output=True, text=True
        )

    assert "OUT: a folder for the results" in run(CHECKPOINT="x", STEP="1").stderr
    done = run(OUT=str(tmp_path), CHECKPOINT="x", STEP="9")
    assert (done.returncode, "STEP must be 0, 1, 2 or 3, not 9" in done.stdout) == (2, True)


@pytest.mark.parametrize("program", ["make", "train_vae", "train", "pack"])
def test_programs_have_every_option_of_the_recipe(
    program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        import_module(f"cookbook.ming_mini_2.image.{program}").main(["--help"])
    assert ended.value.code == 0
    known = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    script = RECIPE.read_text(encoding="utf-8").replace("\\\n", " ")
    (line,) = [line for line in script.splitlines() if re.search(rf"\brun {program} ", line)]
    wanted = set(re.findall(r" (--[a-z-]+)", line))
    assert wanted
    assert wanted <= known
