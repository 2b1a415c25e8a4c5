"""Summarise the records of a run: each pass, then mean and deviation over repeats."""

from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Any

from benchmarks.client.load import ClientShare
from benchmarks.evaluation.protocol.record import SampleRecord
from benchmarks.serving.chat_summary import summarise_records
from measurement.intervals import wilson_interval
from measurement.word_errors import WordErrors
from measurement.word_errors import summarise_word_errors as summarise_words

Json = dict[str, Any]


def summarise_pass(
    records: Sequence[SampleRecord],
    clients: Sequence[ClientShare],
    transcripts: "RunTranscripts | None" = None,
) -> Json:
    """Summarise one pass: latencies, throughput and failures.

    Accuracy and word errors are added where they are judged. The time of a pass is the sum over its
    sittings, each from its start to its last answer. A pass of several sittings is marked
    `interrupted`, since it started cold more than once.
    """
    sittings = sorted({record.sitting for record in records})
    span_s = sum(
        max(record.began_s + record.took_s for record in records if record.sitting == sitting)
        for sitting in sittings
    )
    row = summarise_records(records, span_s, clients)
    row["interrupted"] = len(sittings) > 1
    if any(record.right is not None for record in records):
        row["accuracy"] = accuracy(records)
    if transcripts is not None:
        row["words"] = transcripts.summary(records)
    return row


def accuracy(records: Sequence[SampleRecord]) -> Json:
    """Return the share of right answers with Wilson's 95 % interval.

    If there are several groups, each has its own share as well. Failed samples count as wrong.
    """
    right = sum(bool(record.right) for record in records)
    groups = sorted({record.group for record in records})
    result: Json = {
        "items": len(records),
        "right": right,
        "share": right / len(records),
        "interval": wilson_interval(right, len(records)),
        "guessed": sum(record.how == "guessed" for record in records),
        "unparsed": sum(record.how == "none" for record in records),
    }
    if len(groups) > 1:
        result["groups"] = {
            name: fmean(bool(record.right) for record in records if record.group == name)
            for name in groups
        }
    return result


class RunTranscripts:
    """The word errors of a run's transcripts."""

    def __init__(self, counted: dict[tuple[str, int, str], WordErrors]) -> None:
        self._counted = counted

    def summary(self, records: Sequence[SampleRecord]) -> Json:
        """Summarise the word errors of the transcribed records.

        Failed speech is counted separately, and in `wer_corpus_with_failed` with all of its words
        wrong.
        """
        failed = [
            self._counted[record.key] for record in records if record.error and record.key in self
        ]
        transcribed = [
            self._counted[record.key]
            for record in records
            if not record.error and record.key in self
        ]
        with_failed = summarise_words([*transcribed, *failed])
        return {
            **summarise_words(transcribed),
            "failed": len(failed),
            "wer_corpus_with_failed": with_failed["wer_corpus"],
        }

    def __contains__(self, key: object) -> bool:
        return key in self._counted


def summarise_repeats(passes: Sequence[Json]) -> Json:
    """Return the mean and sample deviation of every number of the passes.

    The deviation of a single pass is None.
    """
    flat_rows = [_flatten(row) for row in passes]
    columns = {name: [row[name] for row in flat_rows if name in row] for name in flat_rows[0]}
    return {
        name: {"mean": fmean(values), "sd": stdev(values) if len(values) > 1 else None}
        for name, values in columns.items()
        if len(values) == len(flat_rows)
    }


_NOT_NUMBERS = ("clients", "interval", "failures", "groups")


def _flatten(row: Json, head: str = "") -> dict[str, float]:
    """Return the numbers by dotted name: "ttft_ms.p50"."""
    flat: dict[str, float] = {}
    for name, value in row.items():
        if name in _NOT_NUMBERS or isinstance(value, bool):
            continue
        if isinstance(value, dict):
            flat |= _flatten(value, f"{head}{name}.")
        elif isinstance(value, int | float):
            flat[head + name] = float(value)
    return flat
