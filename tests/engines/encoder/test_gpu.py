"""The encoders on CUDA devices: kernels, graphs, and the engine on one, two and four GPUs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from benchmarks.encoders.shapes import SMALL, randomise_weights, write_vision_checkpoint
from sglang_omni.engines.encoder.contract import EncoderSettings
from sglang_omni.engines.encoder.launch import build_environment
from sglang_omni.engines.runtime.process import EngineProcess, ProcessSpec
from sglang_omni.models.ming.encoders.attention import (
    BACKENDS,
    Segments,
    attend_sdpa,
    load_attention,
)
from sglang_omni.models.ming.encoders.grid import Grid, compute_grid
from sglang_omni.models.ming.encoders.pixels import patchify
from sglang_omni.models.ming.encoders.rotary import rotate_qkv_reference
from sglang_omni.models.ming.encoders.vision_reference import load_vision_reference
from sglang_omni.models.weights import use_device_and_dtype
from tests.engines.encoder.requests import clip, encode, picture
from tests.models.ming.encoders.cases import CLIPS, IMAGES, frames, samples
from tests.testing.golden import TINY, assert_close, load_case

pytestmark = pytest.mark.gpu

# Of bfloat16: eight bits, in every layer of a tiny model.
TOLERANCE = 0.05


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("head_dim", [64, 72])
@pytest.mark.parametrize("lengths", [[256, 256, 64, 1000, 16], [2048, 4096]], ids=["mixed", "long"])
def test_a_kernel_gives_what_plain_attention_gives(
    name: str, head_dim: int, lengths: list[int]
) -> None:
    device = torch.device("cuda")
    qkv = torch.randn(sum(lengths), 3, 4, head_dim, device=device, dtype=torch.bfloat16)
    segments = Segments.from_lengths(lengths, device)
    q, k, v = qkv.unbind(1)
    found = load_attention(name).attend(q, k, v, segments)
    plain = attend_sdpa(q.float(), k.float(), v.float(), segments)
    assert_close(found.float(), plain, 0.02, name)


def test_the_rotation_kernel_gives_what_the_plain_rule_gives() -> None:
    from sglang_omni.models.ming.encoders.rotary_triton import rotate_qkv_in_place

    for dtype, tolerance in ((torch.float32, 1e-6), (torch.bfloat16, 2**-8)):
        qkv = torch.randn(4097, 3, 16, 72, device="cuda", dtype=dtype)
        angles = torch.randn(4097, 36, device="cuda")
        plain = rotate_qkv_reference(qkv, angles.cos(), angles.sin())
        fast = rotate_qkv_in_place(qkv.clone(), angles.cos(), angles.sin())
        for one, other in zip(fast, plain, strict=True):
            assert_close(one.float(), other.float(), tolerance)


def engine(checkpoint: Path, **changes: Any) -> EngineProcess:
    settings = EncoderSettings(
        checkpoint,
        device="cuda",
        dtype="bfloat16",
        threads=4,
        **changes,
    )
    factory = "sglang_omni.engines.encoder.worker:open_worker"
    return EngineProcess(ProcessSpec("encoder", factory, settings, build_environment(settings, 4)))


@pytest.mark.parametrize("ranks", [1, 2])
async def test_the_engine_agrees_in_bfloat16(ranks: int) -> None:
    if torch.cuda.device_count() < ranks:
        pytest.skip(f"needs {ranks} CUDA devices")
    process = engine(TINY, tp_size=ranks, gpus=tuple(range(ranks)))
    await process.start()
    try:
        for name in IMAGES:
            case = load_case(name)
            (part,) = frames(case)
            rows = (await encode(process, picture(part))).view(torch.bfloat16)
            assert_close(rows.float(), case["features"], TOLERANCE, name)
        for name in CLIPS:
            case = load_case(name)
            rows = (await encode(process, clip(samples(case)))).view(torch.bfloat16)
            assert_close(rows.float(), case["features"], TOLERANCE, name)
    finally:
        await process.stop()


# The real head of 72, which the graphs' kernel needs; the tiny one has 36.
@pytest.mark.parametrize(("ranks", "graphs"), [(1, True), (1, False), (2, False), (4, False)])
async def test_engines_agree_with_the_reference(tmp_path: Path, ranks: int, graphs: bool) -> None:
    if torch.cuda.device_count() < ranks:
        pytest.skip(f"needs {ranks} CUDA devices")
    config = replace(SMALL, vision=replace(SMALL.vision, hidden_size=288, num_heads=4))
    write_vision_checkpoint(tmp_path, config)
    reference = load_vision_reference(tmp_path)
    gpus = tuple(range(ranks))
    process = engine(tmp_path, audio=False, tp_size=ranks, gpus=gpus, graphs=graphs)
    await process.start()
    try:
        for shape in ((1, 256, 320, 3), (4, 64, 96, 3), (1, 32, 32, 3), (1, 1536, 1536, 3)):
            pixels = torch.randint(0, 256, shape, dtype=torch.uint8)
            rows = (await encode(process, picture(pixels))).view(torch.bfloat16).float()
            grid = compute_grid(shape, config.vision)
            with torch.inference_mode():
                plain = reference(patchify(pixels, config.vision), [grid])
            assert F.cosine_similarity(rows, plain).min() > 0.999, shape
    finally:
        await process.stop()


@torch.inference_mode()
def test_a_replay_equals_the_eager_blocks(one_rank: None) -> None:
    from sglang_omni.models.ming.encoders.graphs import BlockGraphs
    from sglang_omni.models.ming.encoders.parallel_linears import ParallelLinears
    from sglang_omni.models.ming.encoders.vision import VisionEncoder

    device = torch.device("cuda")
    with use_device_and_dtype(device, torch.bfloat16):
        encoder = VisionEncoder(SMALL, load_attention("varlen"), ParallelLinears(), device)
    randomise_weights(encoder)
    graphs = BlockGraphs(encoder, (64, 256, 1024))
    batches = [
        (Grid(1, 8, 8),),
        (Grid(1, 2, 2), Grid(2, 4, 6)),
        (Grid(1, 30, 30),),
        (Grid(1, 2, 2),),
        (Grid(1, 16, 16),),
    ]
    for grids in batches * 2:
        patches = torch.randn(sum(grid.patches for grid in grids), 1536, device=device)
        inputs = encoder.vision.embed(patches, grids)
        assert graphs.select_bucket(inputs) is not None
        replayed, eager = graphs(inputs).float(), encoder.encode(inputs).float()
        assert F.cosine_similarity(replayed, eager).min() > 0.9999
        assert_close(replayed, eager, 0.02)
