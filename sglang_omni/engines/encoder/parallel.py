"""The tensor-parallel group of the vision encoder's ranks, set up through SGLang."""

import os

import torch
from sglang.srt.distributed import parallel_state

from sglang_omni.engines.runtime.ports import LOOPBACK


def join_group(rank: int, size: int, port: int, device: torch.device) -> None:
    """Join the tensor-parallel group as rank `rank` of `size`, at the loopback `port`.

    Returns once all ranks have joined. SGLang's layers use the group implicitly.
    """
    # A single rank does not communicate, so it does not need NCCL.
    backend = "nccl" if device.type == "cuda" and size > 1 else "gloo"
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    # Custom all-reduce suits small messages over NVLink. The hidden states of an image are larger.
    parallel_state.set_custom_all_reduce(False)
    method = f"tcp://{LOOPBACK}:{port}"
    parallel_state.init_distributed_environment(size, rank, method, rank, backend)
    parallel_state.initialize_model_parallel(size)
