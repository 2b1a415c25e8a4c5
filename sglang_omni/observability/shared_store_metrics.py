"""Metrics of the store that servers share. A server without one has none of them."""

from prometheus_client import CollectorRegistry, Counter, Gauge

from sglang_omni.observability.metrics import PREFIX


class SharedStoreMetrics:
    """Whether the store answers, and how many operations failed."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.up = Gauge(
            f"{PREFIX}_shared_store_up", "1 if the shared store answers, else 0", registry=registry
        )
        self.failures = Counter(
            f"{PREFIX}_shared_store_failures",
            "Reads and writes of the shared store that failed",
            ["operation"],
            registry=registry,
        )
        for operation in ("read", "write", "delete"):
            self.failures.labels(operation)
