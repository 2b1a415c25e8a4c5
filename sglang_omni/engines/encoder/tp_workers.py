"""The other ranks of a tensor-parallel encoder, as the first one holds them.

They are children of the engine process, in its group (`ranks.py`). Orders travel through pipes,
where a rank may wait for hours; a collective operation would time out. A rank that dies takes the
engine with it, because the others would wait for it for ever.
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

LAST_WORDS_S = 1.0

Frames = list[tuple[SharedArray, Layout]]


class TPWorkers:
    """Ranks 1 and up. They live as long as this process, or until `close`."""

    def __init__(self, settings: EncoderSettings, port: int) -> None:
        """Start them; they meet this process at the loopback `port` while it loads."""
        self._closing = threading.Event()
        self._sent: Frames = []
        self._pipes = [self._start(settings, r, port) for r in range(1, settings.tp_size)]

    def send(self, arrays: Sequence[np.ndarray]) -> None:
        """Have them encode `arrays`, together with this process, which must do so next."""
        if not self._pipes:
            return
        # Copies of our own: a client may give its memory up between two ranks' looks at it. They
        # last until the next batch, when every rank has long read them.
        shared = [SharedArray() for _ in arrays]
        self._sent = [(one, one.write(array)) for one, array in zip(shared, arrays, strict=True)]
        for pipe in self._pipes:
            pipe.send(self._sent)

    def close(self) -> None:
        """Let them end."""
        self._closing.set()
        for pipe in self._pipes:
            pipe.close()

    def _start(self, settings: EncoderSettings, rank: int, port: int) -> Connection:
        ours, theirs = Pipe()
        # Not in a session of its own: what kills the engine's group must reach it.
        entry = [sys.executable, "-P", "-m", "sglang_omni.engines.encoder.vision_rank"]
        with theirs:
            process = subprocess.Popen(
                [*entry, str(theirs.fileno()), str(os.getpid())], pass_fds=(theirs.fileno(),)
            )
        ours.send((settings, rank, port))
        watch = (process, rank)
        threading.Thread(target=self._watch, args=watch, name=f"rank-{rank}", daemon=True).start()
        return ours

    def _watch(self, process: subprocess.Popen[bytes], rank: int) -> None:
        code = process.wait()
        # What ended it may be about to end this rank too, with a better word about it.
        if not self._closing.wait(LAST_WORDS_S):
            LOGGER.error("rank %d of the image encoder ended with %d", rank, code)
            kill_group()
