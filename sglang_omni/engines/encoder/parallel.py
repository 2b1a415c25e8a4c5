"""The tensor-parallel group of the vision encoder's ranks, set up through SGLang."""

import os

import torch
from sglang.srt.distributed import parallel_state

from sglang_omni.engines.runtime.ports import LOOPBACK


def join_group(rank: int, size: int, port: int, device: torch.device) -> None:
    """Make this process rank `rank` of the `size` that meet at the loopback `port`.

    Returns once all have come. SGLang's layers find the group by themselves.
    """
    # One rank talks to nobody, so it need not wake NCCL.
    backend = "nccl" if device.type == "cuda" and size > 1 else "gloo"
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    # Made for small messages over NVLink: a picture's hidden states are larger.
    parallel_state.set_custom_all_reduce(False)
    method = f"tcp://{LOOPBACK}:{port}"
    parallel_state.init_distributed_environment(size, rank, method, rank, backend)
    parallel_state.initialize_model_parallel(size)
