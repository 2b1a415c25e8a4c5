"""Reads the weights into memory while the engines start."""

import threading
from pathlib import Path

from sglang_omni.config.tree import Config
from sglang_omni.system.page_cache import prefetch_files, read_available_bytes


def prefetch_weights(config: Config, checkpoint: Path) -> list[threading.Thread]:
    """Start to read the thinker's and the encoders' files, and return the threads that do so.

    Engines import for long before they read, and the disk would wait. With a cluster the engines
    may be on machines with disks of their own, so nothing is read.
    """
    if config.cluster.ray_address is not None:
        return []
    return prefetch_files(sorted(checkpoint.glob("*.safetensors")), read_available_bytes())
