"""The GPU memory of this process."""

import torch


def count_gpu_memory() -> dict[str, float]:
    """Return the most that PyTorch has reserved, as a counter; nothing without a GPU.

    It contains weights, state, activations and graphs, and not the CUDA context.
    """
    if not torch.cuda.is_initialized():
        return {}
    return {"gpu_peak_bytes": float(torch.cuda.max_memory_reserved())}
