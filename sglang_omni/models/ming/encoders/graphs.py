"""CUDA graphs of the vision blocks, merger and projector, one for each bucket of patches.

A batch runs in the smallest bucket that holds it. The padding rows keep values of earlier batches.
They belong to no attention segment, and all other operations work on single rows (or on groups of
merged rows, which images do not share), so padding never affects a real row.

A batch runs eagerly if it has more patches than the largest bucket, more frames than its bucket has
segments, or frames so large that attention is faster without graphs. Such a batch keeps the GPU
busy for longer than the host needs to launch it, while a graph would launch empty blocks for every
possible segment.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from sglang_omni.models.ming.encoders.attention import Segments
from sglang_omni.models.ming.encoders.vision import BlockInputs, VisionEncoder
from sglang_omni.protocol.errors import ConfigError

BUCKETS = (256, 1024, 2048, 4096, 8192)
# A bucket's capacity of frames: one for each `PATCHES_PER_SEGMENT` patches, or this minimum.
MIN_SEGMENTS = 8
PATCHES_PER_SEGMENT = 1024
WARM_UPS = 2

# Captures a computation on static tensors. Returns a function that replays it and returns its
# static output.
Capture = Callable[[Callable[[], Tensor]], Callable[[], Tensor]]


@dataclass(frozen=True)
class GraphBucket:
    """The static inputs of one graph, and `replay`, which returns its static output."""

    inputs: BlockInputs
    replay: Callable[[], Tensor]

    @property
    def segments(self) -> int:
        """Return the maximum number of frames."""
        return len(self.inputs.segments.bounds) - 1


class BlockGraphs:
    """Runs `VisionEncoder.encode` with CUDA graphs, captured at construction for all `buckets`."""

    def __init__(
        self,
        encoder: VisionEncoder,
        buckets: Sequence[int] = BUCKETS,
        capture: Capture | None = None,
    ) -> None:
        """Capture the graphs.

        Raises:
            ConfigError: The attention kernel reads segments on the host.
        """
        if not encoder.attention.is_capturable:
            raise ConfigError(f"attention {encoder.attention.name!r} cannot be captured in a graph")
        self._encoder = encoder
        capture = capture or cuda_capture()
        # Capture the largest first, so that the others reuse its memory from the pool.
        sizes = sorted(buckets, reverse=True)
        self._buckets = {size: self._build(size, capture) for size in sizes}

    def __call__(self, inputs: BlockInputs) -> Tensor:
        """Return features [patches / merged, hidden], as `VisionEncoder.encode` does."""
        bucket = self.select_bucket(inputs)
        if bucket is None:
            return self._encoder.encode(inputs)
        copy_inputs(bucket.inputs, inputs)
        merged = self._encoder.config.vision.spatial_merge_size**2
        # Copied, because the next replay overwrites it.
        return bucket.replay()[: len(inputs.hidden) // merged].clone()

    def select_bucket(self, inputs: BlockInputs) -> GraphBucket | None:
        """Return the bucket for these inputs, None if they run eagerly."""
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
    """Return zero inputs of `size` patches, as one segment with empty segments behind it."""
    config, weight = encoder.config.vision, encoder.vision.pos_embed.weight
    max_segments = max(MIN_SEGMENTS, size // PATCHES_PER_SEGMENT)
    bounds = torch.full((max_segments + 1,), size, dtype=torch.int32, device=weight.device)
    bounds[0] = 0
    rotary = torch.zeros(size, config.head_dim // 2, dtype=torch.float32, device=weight.device)
    return BlockInputs(
        hidden=weight.new_zeros(size, config.hidden_size),
        cos=rotary,
        sin=rotary.clone(),
        segments=Segments((), bounds, max_length=size),
    )


def copy_inputs(static: BlockInputs, inputs: BlockInputs) -> None:
    """Copy a batch into the leading rows of `static`, and make unused segments empty."""
    patches, bounds = len(inputs.hidden), inputs.segments.bounds
    static.hidden[:patches].copy_(inputs.hidden)
    static.cos[:patches].copy_(inputs.cos)
    static.sin[:patches].copy_(inputs.sin)
    static.segments.bounds.fill_(patches)
    static.segments.bounds[: len(bounds)].copy_(bounds)


def cuda_capture() -> Capture:
    """Return a `Capture` by CUDA graphs that share one memory pool."""
    pool = torch.cuda.graph_pool_handle()

    def capture(compute: Callable[[], Tensor]) -> Callable[[], Tensor]:
        # At the first run, kernels are loaded and libraries allocate memory, which a graph must not
        # capture.
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
