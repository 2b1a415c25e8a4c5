"""SGLang's own metrics, which its processes write to files that any process may read."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from sglang_omni.engines.thinker.metric_files import MULTIPROC_DIR_VARIABLE
from sglang_omni.observability.temp_dir import TempFolder


class SGLangMetrics(Collector):
    """Owns the folder that the thinker's processes write to. `close` removes it."""

    def __init__(self) -> None:
        self._folder = TempFolder("sgl-omni-prometheus-")
        self.registry = CollectorRegistry()
        self.registry.register(self)

    @property
    def environment(self) -> dict[str, str]:
        """What the thinker must be started with, to write to files; never set for this process."""
        return {MULTIPROC_DIR_VARIABLE: str(self._folder.path)}

    def collect(self) -> Iterable[Metric]:
        """What the processes of all the thinker's lives have written; the levels of the last."""
        self._forget_the_dead()
        return _read(self._folder.path)

    def close(self) -> None:
        """Remove the files."""
        self._folder.close()

    def _forget_the_dead(self) -> None:
        """Remove the levels of processes that are gone: what they held is free."""
        for file in self._folder.path.glob("gauge_*.db"):
            pid = file.stem.rpartition("_")[2]
            if pid.isdigit() and not os.path.exists(f"/proc/{pid}"):
                with suppress(OSError):
                    file.unlink()


def _read(folder: Path) -> Iterator[Metric]:
    collector = MultiProcessCollector(CollectorRegistry(), path=str(folder))
    # A file may be begun but not yet filled.
    with suppress(OSError, ValueError, KeyError):
        yield from collector.collect()
