"""Which router serves which token.

Another image router changes what is said of pictures, and not a bit of what is said of text.
"""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from sglang_omni.models.ming.thinker.hf_config import MingConfig
from sglang_omni.models.ming.thinker.reference import load_reference
from tests.engines.thinker.conftest import thinker
from tests.models.ming.thinker.features import greedy_request
from tests.models.ming.thinker.prompts import embeddings, position_table, routes
from tests.testing.golden import TINY, Case, cases, load_case

GREEDY = cases("thinker", "greedy_")
TEXT = [name for name in GREEDY if "text" in name]
SHOWN = [name for name in GREEDY if "text" not in name]

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture(scope="module")
def without_image_router(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny checkpoint with the text router's weights in place of the image router's."""
    folder = tmp_path_factory.mktemp("routers")
    for entry in TINY.iterdir():
        if entry.name != "model.safetensors":
            (folder / entry.name).symlink_to(entry)
    tensors = load_file(TINY / "model.safetensors")
    images = [name for name in tensors if ".mlp.image_gate." in name]
    assert images
    tensors |= {name: tensors[name.replace("image_gate", "gate")].clone() for name in images}
    save_file(tensors, folder / "model.safetensors")
    return folder


def logits(checkpoint: Path, case: Case, config: MingConfig) -> torch.Tensor:
    """Logits of a stored prompt at every position, by the plain model."""
    model = load_reference(checkpoint, config.llm_config)
    table, _ = position_table(case, config)
    with torch.no_grad():
        x = embeddings(case, config, model.model.word_embeddings)
        return model(x, table, routes(case, config))


async def test_logits_of_text_are_bit_equal_and_those_of_pictures_are_not(
    without_image_router: Path, config: MingConfig
) -> None:
    for name in GREEDY:
        case = load_case(name)
        ours, theirs = logits(TINY, case, config), logits(without_image_router, case, config)
        assert torch.equal(ours, theirs) == (name in TEXT), name


@pytest.mark.extended
async def test_the_running_engine_answers_otherwise_about_pictures_alone(
    without_image_router: Path, config: MingConfig
) -> None:
    process = thinker(without_image_router)
    await process.start()
    try:
        for name in GREEDY:
            case = load_case(name)
            outputs = [o async for o in process.submit(greedy_request(case, config))]
            tokens = [token for output in outputs for token in output.token_ids]
            assert (tokens == case["generated_ids"].tolist()) == (name in TEXT), name
    finally:
        await process.stop()


async def test_both_kinds_of_prompt_are_there() -> None:
    assert TEXT
    assert SHOWN
