"""Bucketed blocks give what the plain ones give.

On a CPU the "replay" computes eagerly, on the same static tensors; the real graphs are in
`test_gpu`.
"""

from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor

from sglang_omni.models.ming.encoders.attention import (
    SegmentAttention,
    Segments,
    attend_sdpa,
    load_attention,
    select_backend,
)
from sglang_omni.models.ming.encoders.grid import Grid
from sglang_omni.protocol.errors import ConfigError
from tests.testing.golden import TINY, assert_close

if TYPE_CHECKING:
    from sglang_omni.models.ming.encoders.graphs import BlockGraphs
    from sglang_omni.models.ming.encoders.vision import BlockInputs, VisionEncoder

TOLERANCE = 1e-5
CPU = torch.device("cpu")
BUCKETS = (16, 64, 256)


def from_bounds(q: Tensor, k: Tensor, v: Tensor, segments: Segments) -> Tensor:
    """Attention that knows the segments from the device alone, as a graph does.

    Rows in no segment become NaN, so that a leak of one would show.
    """
    lengths = [length for length in segments.bounds.diff().tolist() if length]
    out = attend_sdpa(q, k, v, Segments.from_lengths(lengths, q.device))
    out[sum(lengths) :] = torch.nan
    return out


@pytest.fixture(scope="module")
def encoder(one_rank: None) -> "VisionEncoder":
    from sglang_omni.models.ming.encoders.parallel_linears import ParallelLinears
    from sglang_omni.models.ming.encoders.vision import load_vision

    attention = SegmentAttention("bounds", from_bounds, is_capturable=True)
    return load_vision(TINY, attention, ParallelLinears(), CPU, torch.float32)


@pytest.fixture(scope="module")
def graphs(encoder: "VisionEncoder") -> "BlockGraphs":
    from sglang_omni.models.ming.encoders.graphs import BlockGraphs

    with torch.inference_mode():
        return BlockGraphs(encoder, BUCKETS, capture=lambda compute: compute)


def inputs_of(encoder: "VisionEncoder", *grids: Grid) -> "BlockInputs":
    patches = torch.randn(sum(grid.patches for grid in grids), 1536)
    return encoder.vision.embed(patches, grids)


@torch.inference_mode()
def test_a_padded_bucket_gives_what_the_plain_blocks_give(
    encoder: "VisionEncoder", graphs: "BlockGraphs"
) -> None:
    batches = [
        (Grid(1, 8, 8),),
        (Grid(1, 2, 2),),
        (Grid(1, 2, 2), Grid(2, 2, 4)),
        (Grid(1, 4, 4), Grid(1, 6, 4), Grid(1, 2, 2)),
        (Grid(1, 12, 14),),
        (Grid(1, 2, 2),),
    ]
    for grids in batches:
        inputs = inputs_of(encoder, *grids)
        assert graphs.select_bucket(inputs) is not None
        assert_close(graphs(inputs), encoder.encode(inputs), TOLERANCE)


@torch.inference_mode()
def test_a_result_survives_the_next_replay(encoder: "VisionEncoder", graphs: "BlockGraphs") -> None:
    first = inputs_of(encoder, Grid(1, 4, 4))
    features = graphs(first)
    graphs(inputs_of(encoder, Grid(1, 4, 4)))
    assert_close(features, encoder.encode(first), TOLERANCE)


@torch.inference_mode()
def test_the_smallest_bucket_that_holds_a_batch_is_taken(
    encoder: "VisionEncoder", graphs: "BlockGraphs"
) -> None:
    for height, size in ((2, 16), (4, 16), (6, 64), (16, 64), (18, 256)):
        bucket = graphs.select_bucket(inputs_of(encoder, Grid(1, height, 4)))
        assert bucket is not None
        assert len(bucket.inputs.hidden) == size


@torch.inference_mode()
def test_more_patches_or_frames_than_a_bucket_holds_run_eagerly(
    encoder: "VisionEncoder", graphs: "BlockGraphs"
) -> None:
    for grids in ((Grid(1, 16, 18),), (Grid(9, 2, 2),)):
        inputs = inputs_of(encoder, *grids)
        assert graphs.select_bucket(inputs) is None
        assert_close(graphs(inputs), encoder.encode(inputs), TOLERANCE)


def test_a_kernel_that_reads_on_the_host_is_refused(serving: "VisionEncoder") -> None:
    from sglang_omni.models.ming.encoders.graphs import BlockGraphs

    assert not load_attention("sdpa").is_capturable
    with pytest.raises(ConfigError, match="sdpa"):
        BlockGraphs(serving, BUCKETS, capture=lambda compute: compute)


def test_flash_attention_is_the_default_where_it_can_be() -> None:
    cuda = torch.device("cuda")
    assert select_backend(cuda, torch.bfloat16, 72) == "mixed"
    assert select_backend(cuda, torch.bfloat16, 36) == "sdpa"
    assert select_backend(cuda, torch.float32, 72) == "sdpa"
    assert select_backend(CPU, torch.bfloat16, 72) == "sdpa"


def test_an_unknown_kernel_is_refused() -> None:
    with pytest.raises(ConfigError, match="quick"):
        load_attention("quick")
