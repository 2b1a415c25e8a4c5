"""How Ming is asked for an image: the prompt, its query tokens, and sizes."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from sglang_omni.models.chat import PromptImage
from sglang_omni.models.ming.family import FAMILY
from sglang_omni.models.ming.image.format import MingImageFormat
from sglang_omni.models.ming.tiny import write_tiny_checkpoint
from sglang_omni.protocol.errors import CheckpointError, InvalidRequest
from tests.models.ming.prompt.test_chat import message


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    write_tiny_checkpoint(folder)
    return folder


@pytest.fixture(scope="module")
def image_format(tiny: Path) -> MingImageFormat:
    return FAMILY.image_format(tiny, FAMILY.chat_format(tiny))


def test_query_rows_are_those_of_the_checkpoint(tiny: Path, image_format: MingImageFormat) -> None:
    stored = load_file(tiny / "mlp" / "model.safetensors")["query_tokens_dict.4x4"]
    rows = image_format.query_rows
    assert rows.dtype == "uint16"
    assert (rows == stored.view(torch.uint16).numpy()).all()


def test_the_prompt_is_that_of_a_chat_with_the_query_block(
    tiny: Path, image_format: MingImageFormat
) -> None:
    chat = FAMILY.chat_format(tiny)
    request = message("user", 'make the sky "blue"')
    messages = [replace(request, content=(PromptImage(6), *request.content))]
    prompt = image_format.build_prompt(messages)
    plain = chat.tokenize(messages)
    ids, (first, last) = prompt.prompt.ids, prompt.query_run
    patch = chat.tokenizer.token_id("<imagePatch>")
    assert ids[: len(plain.ids)] == plain.ids
    assert ids[len(plain.ids) :] == (patch + 1, *[patch] * 16, patch + 2)
    assert (first, last) == (len(plain.ids) + 1, len(plain.ids) + 16)
    assert prompt.prompt.runs == plain.runs
    assert prompt.query_grid == (1, 2, 32)
    assert prompt.text.endswith('make the sky "blue"<|role_end|><role>ASSISTANT</role>')


def test_sizes_and_tokens(image_format: MingImageFormat) -> None:
    assert image_format.plan(None, None, 1024, None).size == (1024, 1024)
    assert image_format.plan(None, None, 1024, None).tokens == 4096
    assert image_format.plan((1080, 1920), None, 1024, None).size == (768, 1365)
    assert image_format.plan((512, 512), None, 512, (110, 150)).size == (422, 576)
    assert image_format.plan(None, 16 / 9, 512, None).size == (384, 672)
    with pytest.raises(InvalidRequest, match="too narrow"):
        image_format.plan((100, 1000), None, 512, None)
    for aspect in (0.0, 0.2, 5.0):
        with pytest.raises(InvalidRequest, match=r"between 0\.25 and 4") as error:
            image_format.plan(None, aspect, 512, None)
        assert error.value.param == "aspect_ratio"


def test_the_resolution_of_a_size_is_that_of_as_many_pixels(image_format: MingImageFormat) -> None:
    assert image_format.fit_resolution((512, 512)) == 512
    assert image_format.fit_resolution((256, 1024)) == 512
    assert image_format.fit_resolution((1024, 1536)) == 1024
    assert image_format.fit_resolution((700, 700)) == 672


def with_head_config(tiny: Path, folder: Path, **changes: object) -> Path:
    """A copy of the tiny checkpoint by links, with another configuration of its head."""
    folder.mkdir()
    for path in tiny.iterdir():
        if path.name != "mlp":
            (folder / path.name).symlink_to(path)
    (folder / "mlp").mkdir()
    (folder / "mlp" / "model.safetensors").symlink_to(tiny / "mlp" / "model.safetensors")
    config = json.loads((tiny / "mlp" / "config.json").read_text())
    (folder / "mlp" / "config.json").write_text(json.dumps({**config, **changes}))
    return folder


def test_a_checkpoint_may_name_the_resolutions_that_it_draws(tiny: Path, tmp_path: Path) -> None:
    folder = with_head_config(tiny, tmp_path / "small", img_gen_resolutions=[256])
    small = FAMILY.image_format(folder, FAMILY.chat_format(folder))
    assert small.plan(None, None, 1024, None).size == (256, 256)
    assert small.plan(None, None, 1024, None).tokens == 256
    assert small.plan((1080, 1920), None, 1024, None).size == (192, 341)
    assert small.plan(None, None, 512, (300, 500)).size == (192, 320)
    assert small.fit_resolution((1024, 1024)) == 256
    model = FAMILY.load_image_model(folder, "cpu", "float32")
    image = model.start(replace(model.sample_input(), size=None))
    assert image.plan.bucket == (256, 256)


@pytest.mark.parametrize("resolutions", [[], [300]])
def test_resolutions_without_a_table_are_refused(
    tiny: Path, tmp_path: Path, resolutions: list[int]
) -> None:
    folder = with_head_config(tiny, tmp_path / "bad", img_gen_resolutions=resolutions)
    with pytest.raises(CheckpointError, match="img_gen_resolutions must be some of 256, 512"):
        FAMILY.image_format(folder, FAMILY.chat_format(folder))
