"""A rank of the vision encoder.

`python -m sglang_omni.engines.encoder.vision_rank PIPE_FD PARENT_PID` runs rank 1 or up. Rank 0
runs in the engine process.
"""

import logging
import sys
from multiprocessing.connection import Connection

import torch

from sglang_omni.engines.encoder.contract import EncoderSettings
from sglang_omni.engines.encoder.threads import limit_threads
from sglang_omni.engines.encoder.tp_workers import Frames
from sglang_omni.engines.runtime.log_records import log_to_server
from sglang_omni.engines.runtime.orphan_reaper import die_with_parent
from sglang_omni.models.encoder import ModalityModel
from sglang_omni.models.registry import family_of


def load_rank(settings: EncoderSettings, rank: int, port: int) -> ModalityModel:
    """Join the other ranks at the loopback `port` and load this rank's part of the encoder.

    All ranks must encode the same arrays together. NCCL calls are not captured, so that several
    ranks run without CUDA graphs. SGLang is imported only where its layers are needed.

    Raises:
        CheckpointError: The checkpoint is incomplete.
    """
    device = torch.device(settings.device)
    if device.type == "cuda":
        device = torch.device("cuda", rank)
        torch.cuda.set_device(device)
    if settings.uses_sglang:
        from sglang_omni.engines.encoder.parallel import join_group

        join_group(rank, settings.tp_size, port, device)
    return family_of(settings.checkpoint).load_vision_encoder(
        settings.checkpoint,
        str(device),
        settings.dtype,
        parallel=settings.uses_sglang,
        graphs=settings.graphs and settings.tp_size == 1,
    )


def run_follower(pipe: Connection) -> None:
    """Start the rank of the first message, and encode the arrays of every further message."""
    settings, rank, port = pipe.recv()
    limit_threads(settings)
    encoder = load_rank(settings, rank, port)
    while True:
        try:
            frames: Frames = pipe.recv()
        except EOFError:
            return
        encoder.encode([shared.read(layout) for shared, layout in frames])


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    log_to_server()
    die_with_parent(int(sys.argv[2]))
    run_follower(Connection(int(sys.argv[1])))
