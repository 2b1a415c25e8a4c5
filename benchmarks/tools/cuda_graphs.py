"""The time of a CUDA graph by replaying it."""

import torch


def milliseconds(graph: torch.cuda.CUDAGraph, replays: int) -> float:
    """The mean time of one of so many replays in a row, on the current stream."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    # The first keeps the card busy while the others are queued: no launch is waited for.
    graph.replay()
    start.record()
    for _ in range(replays):
        graph.replay()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / replays
