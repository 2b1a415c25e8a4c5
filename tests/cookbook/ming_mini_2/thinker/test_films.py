"""Films: drawn as the server would decode them, encoded as its encoder encodes them."""

from random import Random

import numpy as np
import pytest
import torch

from cookbook.ming_mini.thinker.encoders import encode_films
from cookbook.ming_mini.thinker.model import new_thinker
from cookbook.ming_mini_2.thinker.film import Film, film_sizes, moving, still
from cookbook.ming_mini_2.thinker.film_tasks import FRAMES, SIZES, WAYS, film_items
from measurement.media_files import encode_png
from sglang_omni.media.limits import MediaLimits
from sglang_omni.media.video import decode_frame_list
from sglang_omni.models.ming.config import read_encoder_config
from sglang_omni.models.ming.encoders.grid import compute_grid
from sglang_omni.models.ming.encoders.pixels import patchify
from sglang_omni.models.ming.media_rules import RULES
from tests.cookbook.thinker.conftest import LEXICON


@pytest.fixture(scope="module")
def films() -> list[Film]:
    rng = Random(6)
    found = [film_items(rng, LEXICON)[0].film for _ in range(30)]
    return [film for film in found if film]


def test_the_server_decodes_what_is_drawn(films: list[Film]) -> None:
    counts = set()
    for film in films[:8]:
        files = [encode_png(scene.draw()) for scene in film.scenes]
        video = decode_frame_list(files, MediaLimits(), RULES.video)
        assert np.array_equal(video.frames, film.draw())
        assert video.seconds == film.seconds
        counts.add(len(files) % 2)
    assert counts == {0, 1}


def test_films_have_two_to_eight_frames_of_sizes_that_the_server_keeps(films: list[Film]) -> None:
    assert film_sizes() == SIZES
    assert {len(film.scenes) for film in films} <= set(FRAMES)
    assert (min(FRAMES), max(FRAMES)) == (2, 8)
    assert all(film.size in SIZES for film in films)


def test_a_shape_moves_the_way_the_answer_says() -> None:
    rng, seen = Random(2), set()
    for _ in range(60):
        items = film_items(rng, LEXICON)
        ways = [item.answer for item in items if item.task == "film_direction"]
        if not ways:
            continue
        film = items[0].film
        assert film
        first, last = (
            np.array(scene.centre(scene.shapes[0])) for scene in (film.scenes[0], film.scenes[-1])
        )
        step = WAYS[ways[0].lower().strip(".")]
        assert (np.sign(np.round(last - first)) == step).all()
        assert ((first > 0) & (last < film.size)).all()
        seen.add(ways[0])
    assert len(seen) == len(WAYS)


def test_keys_tell_films_apart(films: list[Film]) -> None:
    scene = films[0].scenes[0]
    assert still(scene, 2).key != still(scene, 4).key
    moved = moving(scene, ((0.0, 0.0), (0.0, 40.0)), 0)
    assert np.any(moved.draw()[0] != moved.draw()[1])


def test_pairs_of_frames_are_encoded_as_the_product_does(films: list[Film], folder: object) -> None:
    model = new_thinker(folder, seed=1)  # type: ignore[arg-type]
    config = read_encoder_config(folder).vision  # type: ignore[arg-type]
    frames = torch.from_numpy(next(film for film in films if len(film.scenes) > 4).draw()[:4])
    with torch.no_grad():
        ours = encode_films(model.vision, frames[None].float())[0]
        theirs = model.vision(patchify(frames, config), [compute_grid(frames.shape, config)])
    assert ours.shape == theirs.shape
    assert torch.allclose(ours, theirs.view_as(ours), atol=1e-5)
