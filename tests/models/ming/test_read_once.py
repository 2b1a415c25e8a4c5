"""Engines that start together read each weight from the disk once."""

from pathlib import Path
from types import SimpleNamespace

import psutil
import torch
from safetensors.torch import save_file

from benchmarks.encoders.shapes import REAL
from sglang_omni.models.ming.encoders.loading import build_audio_filler, build_vision_filler
from sglang_omni.models.ming.encoders.tensors import list_audio_tensors, list_vision_tensors
from sglang_omni.models.ming.thinker.tensors import is_encoder_tensor, list_thinker_tensors
from tests.placement.released import TEXT

MIB = 1 << 20
SIZE = 64 * MIB


def resident() -> int:
    """Return the bytes of this process that are in memory, mapped files included."""
    return int(psutil.Process().memory_info().rss)


def test_no_tensor_belongs_to_two_engines() -> None:
    thinker = set(list_thinker_tensors(SimpleNamespace(**TEXT)))
    images = set(list_vision_tensors(REAL.vision, REAL.hidden_size))
    audio = set(list_audio_tensors(REAL.audio, REAL.hidden_size))
    assert not thinker & images | images & audio | audio & thinker
    # What the thinker leaves to the encoders is all of theirs.
    assert all(map(is_encoder_tensor, images | audio))
    assert not any(map(is_encoder_tensor, thinker))


def test_an_encoder_takes_its_own_tensors_of_a_shared_file_only() -> None:
    images = list_vision_tensors(REAL.vision, REAL.hidden_size)
    audio = list_audio_tensors(REAL.audio, REAL.hidden_size)
    nothing: torch.nn.Module = torch.nn.Module()
    for build, own, other in (
        (build_vision_filler, images, audio),
        (build_audio_filler, audio, images),
    ):
        filler = build(nothing, REAL)
        assert all(map(filler.accepts, own))
        assert not any(map(filler.accepts, other))


def test_sglang_does_not_read_tensors_that_are_skipped(tmp_path: Path) -> None:
    from sglang.srt.model_loader.weight_utils import (
        buffered_multi_thread_safetensors_weights_iterator,
    )

    names = "model.lm_head.weight", "vision.pos_embed.weight"
    path = tmp_path / "model.safetensors"
    save_file({name: torch.ones(SIZE, dtype=torch.uint8) for name in names}, path)
    before = resident()
    tensors = dict(buffered_multi_thread_safetensors_weights_iterator([str(path)], 1))
    assert set(tensors) == set(names)
    # Tensors are views of the mapped file, whose pages are read when they are used.
    assert resident() - before < SIZE / 4
    assert int(tensors[names[0]].sum()) == SIZE
    assert SIZE / 2 < resident() - before < 1.5 * SIZE
