"""From the records of a load of chats to one row."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from benchmarks.chat_client import ChatRecord
from benchmarks.speech_load import Observed
from benchmarks.speech_summary import client_saturated, percentiles, reason


def summarise_chats(seen: Observed[ChatRecord]) -> dict[str, Any]:
    """Latencies in milliseconds of what succeeded, throughput, failures by reason.

    Throughput counts successful requests over the time from the start of the load to its last
    answer. RTF is a request's time per second of its audio.
    """
    good = [record for record in seen.records if record.error is None]
    span_s = max(1e-9, seen.ended_s - seen.began_s)
    return {
        "requests": len(seen.records),
        "failed": len(seen.records) - len(good),
        "failures": dict(Counter(reason(record) for record in seen.records if record.error)),
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
        "clients": [asdict(share) for share in seen.clients],
        "client_saturated": client_saturated(seen.clients),
    }


def _milliseconds(times: Iterable[float | None]) -> dict[str, float | None]:
    return percentiles([time * 1e3 for time in times if time is not None])
