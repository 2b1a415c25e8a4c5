"""What engines hold for each unit of work is what their modules keep alive at their peak.

The modules run on the meta device, which keeps shapes and computes nothing.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from benchmarks.encoders.shapes import REAL, SMALL
from benchmarks.talker.shapes import TALKER, VAE
from benchmarks.thinker.shapes import CONSTANTS, SHAPE
from sglang_omni.models.ming.config import EncoderConfig
from sglang_omni.models.ming.encoders import audio, mel, vision
from sglang_omni.models.ming.encoders.attention import SegmentAttention, Segments
from sglang_omni.models.ming.encoders.graphs import BUCKETS
from sglang_omni.models.ming.encoders.linears import PlainLinears
from sglang_omni.models.ming.encoders.vision_model import MingVisionModel
from sglang_omni.models.ming.speech import vae
from sglang_omni.models.ming.speech.fast.state import SlotState
from sglang_omni.models.ming.speech.talker import Talker
from sglang_omni.models.ming.working_memory import (
    GRAPH_PATCHES,
    HALF,
    HOPS_PER_WINDOW,
    count_audio_second,
    count_image_encoder,
    count_talker,
    count_thinker,
    read_working_memory,
)
from sglang_omni.models.weights import use_device_and_dtype
from tests.testing.golden import TINY
from tests.testing.live_bytes import LiveBytes

META = torch.device("meta")
TEXT = SHAPE | CONSTANTS
# How much more than the peak may be counted.
SLACK = 1.15


def attend(q: Tensor, k: Tensor, v: Tensor, segments: Segments) -> Tensor:
    """Stand for an attention that keeps no scores, as those on a GPU."""
    return torch.empty(q.shape, dtype=q.dtype, device=q.device)


def rotate_in_place(qkv: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, ...]:
    """Stand for the kernel on a GPU, which returns views."""
    return qkv.unbind(1)


ATTENTION = SegmentAttention("none", attend, is_capturable=True)


def find_peak(run: Callable[[], Any]) -> int:
    with torch.inference_mode(), LiveBytes() as live:
        run()
    return live.peak


def check(counted: float, peak: int) -> None:
    assert peak <= counted <= SLACK * peak


@pytest.mark.parametrize("config", [REAL, SMALL])
@pytest.mark.parametrize("side", [1024, 4096])
def test_a_pass_of_the_image_encoder(
    config: EncoderConfig, side: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vision, "select_rotary_kernel", lambda device: rotate_in_place)
    # Loading is all that it would do besides.
    model = object.__new__(MingVisionModel)
    model.device, model._graphs = META, None
    with use_device_and_dtype(META, torch.bfloat16):
        model._encoder = vision.VisionEncoder(config, ATTENTION, PlainLinears(), META)
    frames = np.zeros((2, side, side, 3), np.uint8)

    def encode() -> list[Tensor]:
        return model.encode([frames])

    num_patches = (side // config.vision.patch_size) ** 2
    check(num_patches * count_image_encoder(config.vision).patch, find_peak(encode))


@pytest.mark.parametrize(("clips", "seconds"), [(1, 30), (2, 300)])
def test_a_pass_of_the_audio_encoder(
    clips: int, seconds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    filters = mel.build_mel_filters(REAL.audio.n_mels, torch.device("cpu")).to(META)
    monkeypatch.setattr(mel, "build_mel_filters", lambda bins, device: filters)
    with use_device_and_dtype(META, torch.bfloat16):
        encoder = audio.AudioEncoder(REAL, ATTENTION)

    def encode() -> list[Tensor]:
        samples = torch.empty(clips, seconds * 16_000, dtype=torch.float32, device=META)
        return encoder([mel.compute_log_mel(clip, REAL.audio.n_mels) for clip in samples])

    check(clips * seconds * count_audio_second(REAL.audio), find_peak(encode))


def test_a_prefill_of_the_thinker(monkeypatch: pytest.MonkeyPatch) -> None:
    from sglang_omni.models.ming.thinker.int4 import experts
    from sglang_omni.models.ming.thinker.int4.gemm_triton import Int4GemmTile
    from sglang_omni.models.ming.thinker.int4.layout import GROUP, TILE_ROWS, WORDS
    from sglang_omni.models.ming.thinker.int4.weights import Int4Matrix

    def swiglu(gate_up: Tensor, dtype: torch.dtype, *, pdl: bool) -> Tensor:
        return gate_up.new_empty(len(gate_up), gate_up.shape[-1] // 2, dtype=dtype)

    # The kernels write to tensors that are there; only their shapes matter here.
    monkeypatch.setattr(experts, "multiply_int4_experts", lambda *args, **options: None)
    monkeypatch.setattr(experts, "swiglu_parts", swiglu)
    tokens, hidden, width = 4096, TEXT["hidden_size"], TEXT["moe_intermediate_size"]
    top_k = TEXT["num_experts_per_tok"] + 1

    def matrix(rows: int, columns: int) -> Int4Matrix:
        tiles = 1, rows // TILE_ROWS, columns // GROUP, TILE_ROWS
        return Int4Matrix(
            torch.empty(*tiles, WORDS, dtype=torch.int16, device=META),
            torch.empty(tiles, dtype=torch.bfloat16, device=META),
            None,
        )

    weights = experts.Int4Experts(matrix(2 * width, hidden), matrix(hidden, width))
    tile = Int4GemmTile()
    tiling: Any = SimpleNamespace(up=tile, down=tile, height=16)

    def multiply() -> Tensor:
        # The row of each token, its residual, and what norm and attention leave.
        rows = [torch.empty(tokens, hidden, dtype=torch.bfloat16, device=META) for _ in range(4)]
        ids = torch.empty(tokens, top_k, dtype=torch.int32, device=META)
        choice = experts.ExpertChoice(ids, ids.float())
        order: Any = None
        return experts.compute_int4_parts(rows[0], weights, choice, order, tiling)

    check(tokens * count_thinker(TEXT).prompt_token, find_peak(multiply))


def test_the_slots_of_the_talker() -> None:
    with use_device_and_dtype(META, torch.bfloat16):
        talker = Talker(TALKER)
    slots, context = 128, 2048

    def allocate() -> SlotState:
        return SlotState(talker, slots, context)

    memory = count_talker(TALKER, VAE)
    check((slots + 1) * (context * memory.position + memory.slot), find_peak(allocate))


def test_numbers_that_other_modules_have_too() -> None:
    assert max(BUCKETS) == GRAPH_PATCHES
    assert vae.HOPS_PER_WINDOW == HOPS_PER_WINDOW
    assert torch.bfloat16.itemsize == HALF


def test_a_checkpoint_has_what_its_shapes_need() -> None:
    text = TEXT | {"hidden_size": 64, "vocab_size": 1000}
    small, large = read_working_memory(TINY, text), read_working_memory(TINY, TEXT)
    assert small.talker == large.talker
    assert small.thinker.batch_row < large.thinker.batch_row
    assert 0 < small.image_encoder.patch < count_image_encoder(REAL.vision).patch
