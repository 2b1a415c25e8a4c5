"""The time of a CUDA graph, by replaying it."""

import torch


def mean_replay_ms(graph: torch.cuda.CUDAGraph, replays: int) -> float:
    """Return the mean time of a replay in milliseconds.

    It is that of `replays` in a row on the current stream.
    """
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    # The first replay keeps the GPU busy while the others are queued, so no launch is waited for.
    graph.replay()
    start.record()
    for _ in range(replays):
        graph.replay()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / replays
