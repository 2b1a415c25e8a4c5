"""A packed small model draws and edits through a real server."""

from pathlib import Path

import pytest

from cookbook.ming_mini_2.image.configs import SMALL
from cookbook.ming_mini_2.image.evaluate import ImageClient, build_report, evaluate
from cookbook.ming_mini_2.image.layout import write_layout
from cookbook.ming_mini_2.image.model import new_drawing_model
from cookbook.ming_mini_2.image.pack import list_tensors
from cookbook.ming_mini_2.image.vae import new_vae
from sglang_omni.models.checkpoint_files import DIFFUSERS_WEIGHTS_FILE
from sglang_omni.models.ming.config import read_encoder_config
from sglang_omni.models.ming.tiny.files import write_tensors
from tests.server.running import run_server, serve_options

# It starts a server of its own.
pytestmark = pytest.mark.extended


def test_a_server_draws_and_edits(checkpoint: Path) -> None:
    write_layout(checkpoint, SMALL)
    model = new_drawing_model(checkpoint, read_encoder_config(checkpoint).hidden_size, seed=0)
    for path, tensors in list_tensors(model).items():
        write_tensors(checkpoint / path, tensors)
    vae = new_vae(SMALL, seed=0)
    write_tensors(checkpoint / "vae" / DIFFUSERS_WEIGHTS_FILE, vae.state_dict())
    command = ("-m", "sglang_omni", "serve", "--version", "v1", "--model-path", str(checkpoint))
    with run_server(*command, *serve_options(), ready="/ready") as server:
        served = evaluate(ImageClient(server.url, seed=1, steps=2), count=3, at_a_time=2)
    for one in served:
        assert one.judged.pixels.shape == (*one.judged.example.target.size, 3)
    report = build_report(served)
    assert report["pictures"] == 6
    # Random weights draw nothing that is right.
    assert report["right"]["draw"] == report["right"]["edit"] == 0
    assert len(report["wrong"]) == 6
