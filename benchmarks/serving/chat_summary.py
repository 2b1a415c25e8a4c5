"""Summarise the records of a load of chats as one row."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Protocol

from benchmarks.client.chat import ChatRecord
from benchmarks.client.load import ClientShare, LoadResult
from benchmarks.serving.speech_summary import failure_reason, is_client_saturated, percentiles


class MeasuredRequest(Protocol):
    """The part of a chat's or a speech request's record that is summarised.

    Times are in seconds.
    """

    @property
    def took_s(self) -> float:
        """Return the time to the end of the answer."""

    @property
    def ttft_s(self) -> float | None:
        """Return the time to the first text, None without text."""

    @property
    def tpot_s(self) -> float | None:
        """Return the time per token after the first, None for fewer than two."""

    @property
    def ttfa_s(self) -> float | None:
        """Return the time to the first audio, None without audio."""

    @property
    def audio_s(self) -> float:
        """Return the duration of the audio."""

    @property
    def tokens(self) -> int:
        """Return the number of tokens of the answer."""

    @property
    def underruns(self) -> int:
        """Return how often playback ran out of audio."""

    @property
    def dry_s(self) -> float:
        """Return the time for which playback waited for audio."""

    @property
    def status(self) -> int | None:
        """Return the HTTP status, None if there was no answer."""

    @property
    def error(self) -> str | None:
        """Return what failed, None if nothing did."""


def summarise_chats(result: LoadResult[ChatRecord]) -> dict[str, Any]:
    """Return the row of a load, from its start to its last answer."""
    return summarise_records(result.records, result.ended_s - result.began_s, result.clients)


def summarise_records(
    records: Sequence[MeasuredRequest], span_s: float, clients: Sequence[ClientShare]
) -> dict[str, Any]:
    """Return latencies in milliseconds of successful requests, throughput, and failures by reason.

    Throughput counts successful requests over `span_s` seconds. RTF is a request's time per second
    of its audio.
    """
    succeeded, span_s = [record for record in records if record.error is None], max(1e-9, span_s)
    return {
        "requests": len(records),
        "failed": len(records) - len(succeeded),
        "failures": dict(Counter(failure_reason(record) for record in records if record.error)),
        "took_ms": _percentiles_ms(record.took_s for record in succeeded),
        "ttft_ms": _percentiles_ms(record.ttft_s for record in succeeded),
        "tpot_ms": _percentiles_ms(record.tpot_s for record in succeeded),
        "ttfa_ms": _percentiles_ms(record.ttfa_s for record in succeeded),
        "rtf": percentiles(
            [record.took_s / record.audio_s for record in succeeded if record.audio_s]
        ),
        "underruns": sum(record.underruns for record in succeeded),
        "underrun_requests": sum(record.underruns > 0 for record in succeeded),
        "dry_s": sum(record.dry_s for record in succeeded),
        "audio_s_per_s": sum(record.audio_s for record in succeeded) / span_s,
        "tokens_per_s": sum(record.tokens for record in succeeded) / span_s,
        "requests_per_s": len(succeeded) / span_s,
        "seconds": span_s,
        "clients": [asdict(share) for share in clients],
        "client_saturated": is_client_saturated(clients),
    }


def _percentiles_ms(times: Iterable[float | None]) -> dict[str, float | None]:
    return percentiles([time * 1e3 for time in times if time is not None])
