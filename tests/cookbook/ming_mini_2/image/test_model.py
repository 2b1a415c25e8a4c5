"""What the training computes is what the product computes."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from cookbook.ming_mini.thinker.dialogs import ChatMessage, TextRun
from cookbook.ming_mini_2.image.conditions import FrozenThinker
from cookbook.ming_mini_2.image.configs import MINI, SMALL, ImageSizes, num_queries
from cookbook.ming_mini_2.image.drawing import PictureDrawer, draw_picture, encode_pictures
from cookbook.ming_mini_2.image.examples import encode_examples
from cookbook.ming_mini_2.image.flow import DrawingPlan, draw_latents, flow_loss
from cookbook.ming_mini_2.image.layout import write_layout
from cookbook.ming_mini_2.image.model import count_parameters, new_drawing_model
from cookbook.ming_mini_2.image.prompts import PromptBuilder
from cookbook.ming_mini_2.image.store import StoreBuilder
from cookbook.ming_mini_2.image.vae import new_vae
from cookbook.ming_mini_2.image.velocity import Conditions, VelocityModel
from sglang_omni.models.chat import PromptImage
from sglang_omni.models.ming.family import FAMILY
from sglang_omni.models.ming.image.denoiser import DiffusersDenoiser
from sglang_omni.models.ming.image.query_tokens import append_query_block
from sglang_omni.models.ming.prompt.positions import VisualBlock, compute_positions
from sglang_omni.models.ming.tiny.image_configs import build_scheduler_config
from tests.cookbook.ming_mini_2.image.conftest import CPU, Take

MAX_BYTES = 8_000_000


@dataclass(frozen=True)
class Inputs:
    """Random latents of two pictures, times and conditions."""

    latents: Tensor
    tau: Tensor
    rows: Tensor
    reference: Tensor


def inputs(sizes: ImageSizes) -> Inputs:
    generator = torch.Generator().manual_seed(0)
    latents, reference = torch.randn(2, 2, 16, 24, 40, generator=generator)
    shape = (2, num_queries(sizes), sizes.head["diffusion_c_input_dim"])
    rows = nn.functional.normalize(torch.randn(shape, generator=generator), dim=-1)
    return Inputs(latents, torch.tensor([0.2, 0.7]), rows, reference)


# The small one has fewer rows than the 32 to which they are padded.
@pytest.mark.parametrize("sizes", [SMALL, MINI], ids=["small", "mini_2"])
@pytest.mark.parametrize("edit", [False, True])
@torch.no_grad()
def test_velocities_are_those_of_the_product(sizes: ImageSizes, edit: bool, tmp_path: Path) -> None:
    write_layout(tmp_path, sizes)
    transformer = new_drawing_model(tmp_path, thinker_width=64, seed=0).transformer
    for parameter in transformer.parameters():
        # A new transformer predicts zero.
        nn.init.normal_(parameter, std=0.05)
    given = inputs(sizes)
    reference = given.reference if edit else None
    ours = VelocityModel(transformer).predict(
        given.latents, given.tau, Conditions(given.rows, reference)
    )
    product = DiffusersDenoiser(transformer)
    branches = [
        [product.prepare(rows, given.reference[index] if edit else None)]
        for index, rows in enumerate(given.rows)
    ]
    expected = torch.cat(list(product.predict(branches, given.latents, given.tau)))
    assert expected.abs().max() > 0.1
    torch.testing.assert_close(ours, expected, atol=1e-4, rtol=1e-4)


def test_the_loss_teaches_what_the_sampler_follows() -> None:
    generator = torch.Generator().manual_seed(0)
    target = torch.randn(2, 16, 8, 8, generator=generator)

    def know(latents: Tensor, tau: Tensor, conditions: Conditions) -> Tensor:
        """Return the velocity of a model that knows what to draw."""
        return (target - latents) / (1 - tau[:, None, None, None])

    rows = torch.zeros(2, 4, 32)
    assert flow_loss(know, target, rows, None, generator) < 1e-6
    how = DrawingPlan(build_scheduler_config(), steps=5)
    drawn = draw_latents(know, rows, None, tuple(target.shape), how)
    torch.testing.assert_close(drawn, target, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_states_are_those_of_the_reference(
    thinker: FrozenThinker, builder: StoreBuilder, take: Take
) -> None:
    arrays = encode_examples([*take("draw", 3), *take("edit", 3)], builder.prompts)
    queries = torch.randn(num_queries(SMALL), thinker.width)
    for kind, part in arrays.items():
        store = builder.build(kind, part)
        prompts = store.select_prompts(torch.arange(len(store))).prompts
        states = thinker.think(prompts, queries)
        for index, places in enumerate(prompts.queries):
            length = int(places[-1]) + 2
            x = thinker.thinker.model.word_embeddings(prompts.ids[index, :length])
            x[prompts.pictures[index]] = prompts.features[index]
            x[places] = queries
            positions, routes = prompts.positions[index, :, :length], prompts.routes[index, :length]
            alone = thinker.thinker.model(x, positions, routes, thinker.thinker.new_cache())
            torch.testing.assert_close(states[index], alone[places], atol=1e-4, rtol=1e-4)


def test_prompts_are_those_of_the_server(
    checkpoint: Path, prompts: PromptBuilder, take: Take
) -> None:
    chat = FAMILY.chat_format(checkpoint)
    for example in (*take("draw", 4), *take("edit", 4)):
        size = example.source.size if example.source else None
        image = [PromptImage(size[0] * size[1] // 32**2)] if size else []
        turn = ChatMessage("user", (*image, TextRun(example.text)))
        served = chat.tokenize([turn])
        patch = chat.tokenizer.token_id("<imagePatch>")
        query = append_query_block(served.ids, patch, prompts.num_queries)
        ids = prompts.build(example.text, size)
        assert ids == query.ids
        layout = prompts.lay_out(np.array([ids]), size)
        assert (layout.queries[0][0], layout.queries[0][-1]) == query.run
        blocks = [VisualBlock(query.run[0], 1, 1, prompts.num_queries)]
        if size:
            blocks.insert(0, VisualBlock(ids.index(patch), 1, size[0] // 32, size[1] // 32))
        assert np.array_equal(layout.positions[0], compute_positions(len(ids), blocks)[0])


def test_pictures_of_a_batch_are_those_drawn_alone(take: Take) -> None:
    pictures = [one.target for one in take("draw", 12) if one.target.size == (256, 256)]
    arrays = encode_pictures(pictures)
    placed, colours = (torch.from_numpy(one) for one in (arrays.placed, arrays.colours))
    together = PictureDrawer(CPU).draw(placed, colours, (256, 256))
    for picture, pixels in zip(pictures, together, strict=True):
        assert np.array_equal(draw_picture(picture), pixels.numpy())


def test_a_new_model_predicts_nothing_and_fits_its_budget(tmp_path: Path) -> None:
    write_layout(tmp_path, MINI)
    model = new_drawing_model(tmp_path, thinker_width=256, seed=0)
    given = inputs(MINI)
    with torch.no_grad():
        made = VelocityModel(model.transformer).predict(
            given.latents, given.tau, Conditions(given.rows, None)
        )
    assert made.abs().max() == 0
    vae = sum(one.numel() for one in new_vae(MINI, seed=0).parameters())
    assert 2 * (sum(count_parameters(model).values()) + vae) < MAX_BYTES
