"""From the records of a load of chats to one row."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Protocol

from benchmarks.client.chat import ChatRecord
from benchmarks.client.load import ClientShare, LoadResult
from benchmarks.serving.speech_summary import client_saturated, percentiles, reason


class Measured(Protocol):
    """What is known of any request to a chat or to speak. Times in seconds."""

    @property
    def took_s(self) -> float: ...
    @property
    def ttft_s(self) -> float | None: ...
    @property
    def tpot_s(self) -> float | None: ...
    @property
    def ttfa_s(self) -> float | None: ...
    @property
    def audio_s(self) -> float: ...
    @property
    def tokens(self) -> int: ...
    @property
    def underruns(self) -> int: ...
    @property
    def dry_s(self) -> float: ...
    @property
    def status(self) -> int | None: ...
    @property
    def error(self) -> str | None: ...


def summarise_chats(seen: LoadResult[ChatRecord]) -> dict[str, Any]:
    """The row of a load, from its start to its last answer."""
    return summarise_records(seen.records, seen.ended_s - seen.began_s, seen.clients)


def summarise_records(
    records: Sequence[Measured], span_s: float, clients: Sequence[ClientShare]
) -> dict[str, Any]:
    """Latencies in milliseconds of what succeeded, throughput, failures by reason.

    Throughput counts successful requests over `span_s` seconds. RTF is a request's time per second
    of its audio.
    """
    good, span_s = [record for record in records if record.error is None], max(1e-9, span_s)
    return {
        "requests": len(records),
        "failed": len(records) - len(good),
        "failures": dict(Counter(reason(record) for record in records if record.error)),
        "took_ms": _milliseconds(record.took_s for record in good),
        "ttft_ms": _milliseconds(record.ttft_s for record in good),
        "tpot_ms": _milliseconds(record.tpot_s for record in good),
        "ttfa_ms": _milliseconds(record.ttfa_s for record in good),
        "rtf": percentiles([record.took_s / record.audio_s for record in good if record.audio_s]),
        "underruns": sum(record.underruns for record in good),
        "underrun_requests": sum(record.underruns > 0 for record in good),
        "dry_s": sum(record.dry_s for record in good),
        "audio_s_per_s": sum(record.audio_s for record in good) / span_s,
        "tokens_per_s": sum(record.tokens for record in good) / span_s,
        "requests_per_s": len(good) / span_s,
        "seconds": span_s,
        "clients": [asdict(share) for share in clients],
        "client_saturated": client_saturated(clients),
    }


def _milliseconds(times: Iterable[float | None]) -> dict[str, float | None]:
    return percentiles([time * 1e3 for time in times if time is not None])
