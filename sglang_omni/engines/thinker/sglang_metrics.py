"""SGLang's own metrics, which its processes write to files (Prometheus multiprocess mode)."""

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
    """Owns the folder to which the thinker's processes write. `close` removes it."""

    def __init__(self) -> None:
        self._folder = TempFolder("sgl-omni-prometheus-")
        self.registry = CollectorRegistry()
        self.registry.register(self)

    @property
    def environment(self) -> dict[str, str]:
        """Return the thinker's environment variables. They are never set in this process."""
        return {MULTIPROC_DIR_VARIABLE: str(self._folder.path)}

    def collect(self) -> Iterable[Metric]:
        """Return the metrics of all starts of the thinker. Gauges are those of living processes."""
        self._remove_dead_gauges()
        return _read(self._folder.path)

    def close(self) -> None:
        """Remove the files."""
        self._folder.close()

    def _remove_dead_gauges(self) -> None:
        """Remove the gauges of processes that have ended, since they hold nothing any more."""
        for file in self._folder.path.glob("gauge_*.db"):
            pid = file.stem.rpartition("_")[2]
            if pid.isdigit() and not os.path.exists(f"/proc/{pid}"):
                with suppress(OSError):
                    file.unlink()


def _read(folder: Path) -> Iterator[Metric]:
    collector = MultiProcessCollector(CollectorRegistry(), path=str(folder))
    # A file may be created but not written yet.
    with suppress(OSError, ValueError, KeyError):
        yield from collector.collect()
