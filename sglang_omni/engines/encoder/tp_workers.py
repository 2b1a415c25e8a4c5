"""The worker ranks of a tensor-parallel encoder, started by rank 0.

They are children of the engine process, in its process group (`vision_rank.py`). They receive
batches through pipes, because a rank may be idle for hours and a collective operation would time
out. If a rank dies, the engine ends, because the other ranks would wait for it forever.
"""

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection

import numpy as np

from sglang_omni.engines.encoder.contract import EncoderSettings
from sglang_omni.engines.runtime.orphan_reaper import kill_group
from sglang_omni.engines.runtime.shared_array import Layout, SharedArray

LOGGER = logging.getLogger(__name__)

EXIT_GRACE_S = 1.0

Frames = list[tuple[SharedArray, Layout]]


class TPWorkers:
    """Ranks 1 and up. They live as long as this process or until `close`."""

    def __init__(self, settings: EncoderSettings, port: int) -> None:
        """Start the ranks, which use the loopback `port` for the rendezvous with this process."""
        self._closing = threading.Event()
        self._sent: Frames = []
        self._pipes = [self._start(settings, r, port) for r in range(1, settings.tp_size)]

    def send(self, arrays: Sequence[np.ndarray]) -> None:
        """Let the ranks encode `arrays`. This process must encode the same arrays next."""
        if not self._pipes:
            return
        # Copies, because a client may release its memory after some ranks have read it and before
        # others have. They are kept until the next batch, when every rank has read them.
        copies = [SharedArray() for _ in arrays]
        self._sent = [(copy, copy.write(array)) for copy, array in zip(copies, arrays, strict=True)]
        for pipe in self._pipes:
            pipe.send(self._sent)

    def close(self) -> None:
        """End the ranks."""
        self._closing.set()
        for pipe in self._pipes:
            pipe.close()

    def _start(self, settings: EncoderSettings, rank: int, port: int) -> Connection:
        pipe, child_pipe = Pipe()
        # It stays in the engine's process group, so that killing the group ends it.
        entry = [sys.executable, "-P", "-m", "sglang_omni.engines.encoder.vision_rank"]
        with child_pipe:
            process = subprocess.Popen(
                [*entry, str(child_pipe.fileno()), str(os.getpid())],
                pass_fds=(child_pipe.fileno(),),
            )
        pipe.send((settings, rank, port))
        arguments = (process, rank)
        name = f"rank-{rank}"
        threading.Thread(target=self._watch, args=arguments, name=name, daemon=True).start()
        return pipe

    def _watch(self, process: subprocess.Popen[bytes], rank: int) -> None:
        code = process.wait()
        # The cause may end this rank too, with a better error message, so wait for that first.
        if not self._closing.wait(EXIT_GRACE_S):
            LOGGER.error("rank %d of the image encoder exited with %d", rank, code)
            kill_group()
