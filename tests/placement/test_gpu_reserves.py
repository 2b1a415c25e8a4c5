"""Engines at the released shapes stay within their reserves, with random weights on a GPU.

    pytest -m gpu -s tests/placement/test_gpu_reserves.py

prints what was reserved for each engine, and what PyTorch took. What a reserve has for the CUDA
context is not in the latter, so it is subtracted.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.encoders.shapes import REAL, randomise_weights
from benchmarks.talker.shapes import TALKER, random_speech_model
from sglang_omni.models.ming.encoders.attention import load_attention, select_backend
from sglang_omni.models.ming.encoders.audio import AudioEncoder
from sglang_omni.models.ming.encoders.audio_model import MingAudioModel
from sglang_omni.models.ming.encoders.graphs import BlockGraphs
from sglang_omni.models.ming.encoders.linears import PlainLinears
from sglang_omni.models.ming.encoders.vision import VisionEncoder
from sglang_omni.models.ming.encoders.vision_model import MingVisionModel
from sglang_omni.models.weights import use_device_and_dtype
from sglang_omni.placement.limits import EngineLimits
from sglang_omni.placement.reserves import CONTEXT, compute_reserves
from tests.placement.released import GB, RELEASED

pytestmark = pytest.mark.gpu

LIMITS = EngineLimits()
SAMPLE_RATE = 16_000
# From a thumbnail to the largest picture and back: an allocator keeps what no size uses again.
SIDES = (256, 1024, 640, 2048, 1536, 4096, 512, 3072)


@pytest.fixture
def device() -> Iterator[torch.device]:
    """Return a GPU on which nothing of an earlier test is left."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    yield torch.device("cuda:0")
    torch.cuda.empty_cache()


def check_reserve(name: str, build: Callable[[], Any], run: Callable[[Any], object]) -> None:
    """Check that what an engine takes beside its weights is within its reserve."""
    before = torch.cuda.memory_allocated()
    engine = build()
    weights = torch.cuda.memory_allocated() - before
    with torch.inference_mode():
        run(engine)
    torch.cuda.synchronize()
    taken = torch.cuda.max_memory_reserved() - before - weights
    reserve = getattr(compute_reserves(RELEASED, LIMITS), name) - CONTEXT
    print(f"{name}: {weights / GB:.2f} GB of weights, {taken / GB:.2f} of {reserve / GB:.2f} taken")
    assert taken <= reserve


def test_the_image_encoder(device: torch.device) -> None:
    def build() -> MingVisionModel:
        model = object.__new__(MingVisionModel)
        model.device, model._graphs = device, None
        attention = load_attention(select_backend(device, torch.bfloat16, REAL.vision.head_dim))
        with use_device_and_dtype(device, torch.bfloat16):
            model._encoder = VisionEncoder(REAL, attention, PlainLinears(), device)
        randomise_weights(model._encoder)
        return model

    def run(model: MingVisionModel) -> None:
        model._graphs = BlockGraphs(model._encoder)
        for side in SIDES:
            picture = np.zeros((1, side, side, 3), np.uint8)
            count = max(1, LIMITS.image_patches // (side // 16) ** 2)
            model.encode([picture] * count)

    check_reserve("image_encoder", build, run)


def test_the_audio_encoder(device: torch.device) -> None:
    def build() -> MingAudioModel:
        model = object.__new__(MingAudioModel)
        model.device = device
        attention = load_attention(select_backend(device, torch.bfloat16, REAL.audio.head_dim))
        with use_device_and_dtype(device, torch.bfloat16):
            model._encoder = AudioEncoder(REAL, attention)
        randomise_weights(model._encoder)
        return model

    def run(model: MingAudioModel) -> None:
        for seconds in (1, 30, 7, 120, 300):
            clip = np.zeros(seconds * SAMPLE_RATE, np.float32)
            model.encode([clip] * int(LIMITS.audio_seconds // seconds))

    check_reserve("audio_encoder", build, run)


def test_the_talker(device: torch.device) -> None:
    from sglang_omni.models.ming.speech.fast.graph_executor import GraphExecutor

    def run(model: Any) -> None:
        # It captures and replays every graph.
        GraphExecutor(model, LIMITS.slots, LIMITS.slot_positions, max_patches=1000)

    check_reserve("talker", lambda: random_speech_model(TALKER, device, torch.bfloat16), run)
