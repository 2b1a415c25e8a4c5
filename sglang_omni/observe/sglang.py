"""SGLang's own metrics, which its processes write to files that any process may read."""

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

# Where prometheus_client is told to write to files; set for the thinker, never for this process.
VARIABLE = "PROMETHEUS_MULTIPROC_DIR"


class SGLangMetrics(Collector):
    """Owns the folder that the thinker's processes write to. `close` removes it."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="sgl-omni-metrics-")
        self.registry = CollectorRegistry()
        self.registry.register(self)

    @property
    def environment(self) -> dict[str, str]:
        """What the thinker must be started with."""
        return {VARIABLE: self._folder.name}

    def collect(self) -> Iterable[Metric]:
        """What the processes of all the thinker's lives have written; the levels of the last."""
        self._forget_the_dead()
        return _read(self._folder.name)

    def close(self) -> None:
        """Remove the files."""
        self._folder.cleanup()

    def _forget_the_dead(self) -> None:
        """Remove the levels of processes that are gone: what they held is free."""
        for file in Path(self._folder.name).glob("gauge_*.db"):
            pid = file.stem.rpartition("_")[2]
            if pid.isdigit() and not os.path.exists(f"/proc/{pid}"):
                with suppress(OSError):
                    file.unlink()


def _read(folder: str) -> Iterator[Metric]:
    collector = MultiProcessCollector(CollectorRegistry(), path=folder)
    # A file may be begun but not yet filled.
    with suppress(OSError, ValueError, KeyError):
        yield from collector.collect()
