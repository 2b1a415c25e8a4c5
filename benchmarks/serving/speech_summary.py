"""Summarise the records of a load of speech, and search the most listeners that a server serves."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Protocol

from benchmarks.client.exchange import RequestRecord
from benchmarks.client.load import ClientShare, LoadResult

# Fewer samples are too few for a 99th percentile.
P99_SAMPLES = 100
# A busier or later client process may receive audio later than it arrived.
BUSY_CLIENT_CPU = 0.8
LATE_CLIENT_S = 0.05


def percentile(values: Sequence[float], percent: float) -> float | None:
    """Return the smallest value that `percent` % of `values` do not exceed.

    Returns None without values.
    """
    if not values:
        return None
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


def percentiles(values: Sequence[float]) -> dict[str, float | None]:
    """Return mean, p50, p95, and p99 where there are enough samples."""
    has_p99 = len(values) >= P99_SAMPLES
    return {
        "mean": sum(values) / len(values) if values else None,
        "p50": percentile(values, 50),
        "p95": percentile(values, 95),
        "p99": percentile(values, 99) if has_p99 else None,
    }


def format_percentiles(values: dict[str, float | None]) -> str:
    """Format p50, p95 and p99; "-" where there is none."""
    selected = (values[name] for name in ("p50", "p95", "p99"))
    return "/".join("-" if value is None else f"{value:.0f}" for value in selected)


def summarise_speech(result: LoadResult[RequestRecord]) -> dict[str, Any]:
    """Return latencies in milliseconds of successful requests, throughput, and failures by reason.

    Throughput counts the audio of successful requests over the time from the start of the load to
    its last answer. RTF is a request's time per second of its audio.
    """
    succeeded = [record for record in result.records if record.error is None]
    ttfa = [record.ttfa_s * 1e3 for record in succeeded if record.ttfa_s is not None]
    span_s = max(1e-9, result.ended_s - result.began_s)
    return {
        "requests": len(result.records),
        "failed": len(result.records) - len(succeeded),
        "failures": dict(
            Counter(failure_reason(record) for record in result.records if record.error)
        ),
        "ttfa_ms": percentiles(ttfa),
        "rtf": percentiles([record.took_s / record.audio_s for record in succeeded]),
        "underruns": sum(record.underruns for record in result.records),
        "underrun_requests": sum(record.underruns > 0 for record in result.records),
        "dry_s": sum(record.dry_s for record in result.records),
        "audio_s_per_s": sum(record.audio_s for record in succeeded) / span_s,
        "requests_per_s": len(succeeded) / span_s,
        "seconds": span_s,
        "clients": [asdict(share) for share in result.clients],
        "client_saturated": is_client_saturated(result.clients),
    }


def has_no_underruns(row: dict[str, Any]) -> bool:
    """Return whether every request succeeded and was played without an underrun."""
    return row["requests"] > 0 and row["failed"] == 0 and row["underruns"] == 0


def find_largest_passing(
    passes: Callable[[int], bool], first: int, most: int, fineness: float
) -> int:
    """Return the largest number that passes: doubling from `first` to `most`, then halving the gap.

    The returned number passed, and one larger by `fineness` (a fraction) did not, unless it is
    `most`. Returns 0 if even `first` does not pass.
    """
    largest_passing, smallest_failing, trial = 0, most + 1, min(first, most)
    while trial > largest_passing:
        if passes(trial):
            largest_passing = trial
        else:
            smallest_failing = trial
        if largest_passing == 0:
            return 0
        trial = (
            min(2 * largest_passing, most)
            if smallest_failing > most
            else (largest_passing + smallest_failing) // 2
        )
        if smallest_failing <= most and smallest_failing - largest_passing <= max(
            1, fineness * largest_passing
        ):
            return largest_passing
    return largest_passing


def is_client_saturated(clients: Sequence[ClientShare]) -> bool:
    """Return whether a client process may have received audio later than it arrived."""
    return any(share.cpu > BUSY_CLIENT_CPU or share.lag_max_s > LATE_CLIENT_S for share in clients)


class EndedRequest(Protocol):
    """A request that has succeeded or failed."""

    @property
    def status(self) -> int | None:
        """Return the HTTP status, None if there was no answer."""

    @property
    def error(self) -> str | None:
        """Return what failed, None if nothing did."""


def failure_reason(record: EndedRequest) -> str:
    """Return why a request failed: its status, or its error if it had no error status."""
    return f"{record.status}" if record.status not in (None, 200) else f"{record.error}"
