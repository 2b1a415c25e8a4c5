"""The benchmark's checkpoint is one that the encoders load."""

from pathlib import Path

import torch

from benchmarks.encoders.shapes import REAL, SMALL, randomise_weights, write_vision_checkpoint
from measurement.environment import fingerprint
from sglang_omni.models.ming.encoders.attention import load_attention
from sglang_omni.models.ming.encoders.audio import AudioEncoder
from sglang_omni.models.ming.encoders.grid import Grid
from sglang_omni.models.ming.encoders.tensors import list_vision_tensors
from sglang_omni.models.ming.encoders.vision_reference import load_vision_reference


def test_a_written_vision_checkpoint_loads_and_runs(tmp_path: Path) -> None:
    write_vision_checkpoint(tmp_path, SMALL)
    model = load_vision_reference(tmp_path)
    with torch.inference_mode():
        features = model(torch.randn(16, SMALL.vision.patch_width), [Grid(1, 4, 4)])
    assert features.shape == (4, SMALL.hidden_size)
    assert features.isfinite().all()


def test_random_weights_reach_every_tensor() -> None:
    encoder = AudioEncoder(SMALL, load_attention("sdpa"))
    for tensor in encoder.state_dict().values():
        tensor.fill_(torch.nan)
    randomise_weights(encoder)
    assert all(tensor.isfinite().all() for tensor in encoder.state_dict().values())


def test_the_real_shapes_are_the_released_models() -> None:
    shapes = list_vision_tensors(REAL.vision, REAL.hidden_size)
    assert shapes["vision.blocks.26.mlp.linear_fc1.weight"] == (4304, 1152)
    assert shapes["vision.merger.linear_fc2.weight"] == (4096, 4608)
    assert REAL.vision.head_dim == 72


def test_a_fingerprint_names_versions() -> None:
    assert fingerprint()["torch"] == torch.__version__
