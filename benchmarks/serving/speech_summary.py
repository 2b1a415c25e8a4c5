"""From the records of a load to the numbers one compares, and to the most listeners it bears."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Protocol

from benchmarks.client.exchange import RequestRecord
from benchmarks.client.load import ClientShare, LoadResult

# Fewer samples say nothing about one in a hundred.
P99_SAMPLES = 100
# A client process beyond these may have heard late what came in time.
BUSY_CLIENT_CPU = 0.8
LATE_CLIENT_S = 0.05


def percentile(values: Sequence[float], percent: float) -> float | None:
    """The smallest value that at least `percent` % of `values` do not exceed; None without any."""
    if not values:
        return None
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


def percentiles(values: Sequence[float]) -> dict[str, float | None]:
    """Mean, p50, p95, and p99 where there are samples enough."""
    enough = len(values) >= P99_SAMPLES
    return {
        "mean": sum(values) / len(values) if values else None,
        "p50": percentile(values, 50),
        "p95": percentile(values, 95),
        "p99": percentile(values, 99) if enough else None,
    }


def shown(values: dict[str, float | None]) -> str:
    """The percentiles of a row for a line of text; "-" where there is none."""
    three = (values[name] for name in ("p50", "p95", "p99"))
    return "/".join("-" if value is None else f"{value:.0f}" for value in three)


def summarise(seen: LoadResult[RequestRecord]) -> dict[str, Any]:
    """One row: latencies in milliseconds of what succeeded, throughput, failures by reason.

    Throughput counts the audio of successful requests over the time from the start of the load to
    its last answer. RTF is a request's time per second of its audio.
    """
    good = [record for record in seen.records if record.error is None]
    ttfa = [record.ttfa_s * 1e3 for record in good if record.ttfa_s is not None]
    span_s = max(1e-9, seen.ended_s - seen.began_s)
    return {
        "requests": len(seen.records),
        "failed": len(seen.records) - len(good),
        "failures": dict(Counter(reason(record) for record in seen.records if record.error)),
        "ttfa_ms": percentiles(ttfa),
        "rtf": percentiles([record.took_s / record.audio_s for record in good]),
        "underruns": sum(record.underruns for record in seen.records),
        "underrun_requests": sum(record.underruns > 0 for record in seen.records),
        "dry_s": sum(record.dry_s for record in seen.records),
        "audio_s_per_s": sum(record.audio_s for record in good) / span_s,
        "requests_per_s": len(good) / span_s,
        "seconds": span_s,
        "clients": [asdict(share) for share in seen.clients],
        "client_saturated": client_saturated(seen.clients),
    }


def plays_through(row: dict[str, Any]) -> bool:
    """Whether everybody heard everything without a gap."""
    return row["requests"] > 0 and row["failed"] == 0 and row["underruns"] == 0


def most_that_pass(passes: Callable[[int], bool], first: int, most: int, fineness: float) -> int:
    """The largest number that passes: doubling from `first` to `most`, then halving the gap.

    The answer passed, and what is `fineness` (a fraction) larger did not, unless it is `most`.
    0 when not even `first` passes.
    """
    good, bad, trial = 0, most + 1, min(first, most)
    while trial > good:
        if passes(trial):
            good = trial
        else:
            bad = trial
        if good == 0:
            return 0
        trial = min(2 * good, most) if bad > most else (good + bad) // 2
        if bad <= most and bad - good <= max(1, fineness * good):
            return good
    return good


def client_saturated(clients: Sequence[ClientShare]) -> bool:
    """Whether a client process may have heard late what came in time."""
    return any(share.cpu > BUSY_CLIENT_CPU or share.lag_max_s > LATE_CLIENT_S for share in clients)


class Ended(Protocol):
    """A request that has ended, well or not."""

    @property
    def status(self) -> int | None: ...
    @property
    def error(self) -> str | None: ...


def reason(record: Ended) -> str:
    """Why a request failed: its status, or its error where there was none."""
    return f"{record.status}" if record.status not in (None, 200) else f"{record.error}"
