"""The vision blocks, merger and projector as CUDA graphs, one for each bucket of patches.

A batch runs in the smallest bucket that holds it. Rows behind its patches hold whatever the batch
before left there: they lie in no attention segment, and everything else works row by row (or by
groups of merged rows, which no picture shares), so they never reach a real row.

The declared rule: a batch of more patches than the largest bucket, of more frames than its bucket
has segments, or of frames so large that their attention is faster outside of graphs, runs eagerly.
Such a batch keeps the GPU busy for longer than the host needs to launch it, and a graph launches
empty blocks for every segment it might have.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from sglang_omni.models.ming.encoders.attention import Segments
from sglang_omni.models.ming.encoders.vision import BlockInputs, VisionEncoder
from sglang_omni.protocol.errors import ConfigError

BUCKETS = (256, 1024, 2048, 4096, 8192)
# Frames for which a bucket has room: this many, or one for each so many patches.
FEWEST_SEGMENTS = 8
PATCHES_PER_SEGMENT = 1024
WARM_UPS = 2

# Takes a computation on static tensors; returns what runs it again and gives its static output.
Capture = Callable[[Callable[[], Tensor]], Callable[[], Tensor]]


@dataclass(frozen=True)
class GraphBucket:
    """The static inputs of one graph, and `replay`, which returns its static output."""

    inputs: BlockInputs
    replay: Callable[[], Tensor]

    @property
    def segments(self) -> int:
        """Frames that find room."""
        return len(self.inputs.segments.bounds) - 1


class BlockGraphs:
    """Runs `VisionEncoder.encode` by graphs, captured once, at construction, for all `buckets`."""

    def __init__(
        self,
        encoder: VisionEncoder,
        buckets: Sequence[int] = BUCKETS,
        capture: Capture | None = None,
    ) -> None:
        """Raises `ConfigError` for an attention kernel that reads segments on the host."""
        if not encoder.attention.is_capturable:
            raise ConfigError(f"attention {encoder.attention.name!r} cannot be captured in a graph")
        self._encoder = encoder
        capture = capture or cuda_capture()
        # The largest first: the others then find their memory in the pool.
        sizes = sorted(buckets, reverse=True)
        self._buckets = {size: self._build(size, capture) for size in sizes}

    def __call__(self, inputs: BlockInputs) -> Tensor:
        """Features [patches / merged, hidden], as `VisionEncoder.encode` gives them."""
        bucket = self.bucket(inputs)
        if bucket is None:
            return self._encoder.encode(inputs)
        fill(bucket.inputs, inputs)
        merged = self._encoder.config.vision.spatial_merge_size**2
        # Copied, because the next replay writes over it.
        return bucket.replay()[: len(inputs.hidden) // merged].clone()

    def bucket(self, inputs: BlockInputs) -> GraphBucket | None:
        """The bucket for these inputs; None if they run eagerly."""
        patches, frames = len(inputs.hidden), len(inputs.segments.lengths)
        size = min((size for size in self._buckets if size >= patches), default=None)
        if min(inputs.segments.lengths) >= self._encoder.attention.min_eager_rows:
            return None
        if size is None or self._buckets[size].segments < frames:
            return None
        return self._buckets[size]

    def _build(self, size: int, capture: Capture) -> GraphBucket:
        inputs = static_inputs(self._encoder, size)
        return GraphBucket(inputs, capture(lambda: self._encoder.encode(inputs)))


def static_inputs(encoder: VisionEncoder, size: int) -> BlockInputs:
    """Inputs of `size` patches, zero, as one segment and room for others."""
    config, like = encoder.config.vision, encoder.vision.pos_embed.weight
    room = max(FEWEST_SEGMENTS, size // PATCHES_PER_SEGMENT)
    bounds = torch.full((room + 1,), size, dtype=torch.int32, device=like.device)
    bounds[0] = 0
    turns = torch.zeros(size, config.head_dim // 2, dtype=torch.float32, device=like.device)
    return BlockInputs(
        hidden=like.new_zeros(size, config.hidden_size),
        cos=turns,
        sin=turns.clone(),
        segments=Segments((), bounds, max_length=size),
    )


def fill(static: BlockInputs, inputs: BlockInputs) -> None:
    """Put a batch into the leading rows; segments that it does not need become empty."""
    patches, bounds = len(inputs.hidden), inputs.segments.bounds
    static.hidden[:patches].copy_(inputs.hidden)
    static.cos[:patches].copy_(inputs.cos)
    static.sin[:patches].copy_(inputs.sin)
    static.segments.bounds.fill_(patches)
    static.segments.bounds[: len(bounds)].copy_(bounds)


def cuda_capture() -> Capture:
    """Capture in CUDA graphs that share one pool of memory."""
    pool = torch.cuda.graph_pool_handle()

    def capture(compute: Callable[[], Tensor]) -> Callable[[], Tensor]:
        # Kernels load and libraries reserve memory at their first run, which no graph may hold.
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UPS):
                compute()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool):
            out = compute()

        def replay() -> Tensor:
            graph.replay()
            return out

        return replay

    return capture
