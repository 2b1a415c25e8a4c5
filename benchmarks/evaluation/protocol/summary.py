"""From the records of a run to its numbers: each pass, then mean and deviation over repeats."""

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
    records: Sequence[SampleRecord], clients: Sequence[ClientShare], heard: "Heard | None" = None
) -> Json:
    """One pass: latencies, throughput, failures; accuracy and word errors where they are judged.

    Its time is that of its sittings added up, each from its start to its last answer; a pass of
    several sittings is marked `interrupted`, since it began cold again.
    """
    sittings = sorted({one.sitting for one in records})
    span_s = sum(
        max(one.began_s + one.took_s for one in records if one.sitting == sitting)
        for sitting in sittings
    )
    row = summarise_records(records, span_s, clients)
    row["interrupted"] = len(sittings) > 1
    if any(one.right is not None for one in records):
        row["accuracy"] = accuracy(records)
    if heard is not None:
        row["words"] = heard.summary(records)
    return row


def accuracy(records: Sequence[SampleRecord]) -> Json:
    """Right answers of all samples, failed ones included, with Wilson's 95 % interval; by group
    where there are several."""
    right = sum(bool(one.right) for one in records)
    groups = sorted({one.group for one in records})
    result: Json = {
        "items": len(records),
        "right": right,
        "share": right / len(records),
        "interval": wilson_interval(right, len(records)),
        "guessed": sum(one.how == "guessed" for one in records),
        "unparsed": sum(one.how == "none" for one in records),
    }
    if len(groups) > 1:
        result["groups"] = {
            name: fmean(bool(one.right) for one in records if one.group == name) for name in groups
        }
    return result


class Heard:
    """What a recogniser made of the speech of a run."""

    def __init__(self, counted: dict[tuple[str, int, str], WordErrors]) -> None:
        self._counted = counted

    def summary(self, records: Sequence[SampleRecord]) -> Json:
        """Word errors of the records that were listened to. Speech that failed is counted apart,
        and once more as all of its words wrong (`wer_corpus_with_failed`)."""
        failed = [self._counted[one.key] for one in records if one.error and one.key in self]
        heard = [self._counted[one.key] for one in records if not one.error and one.key in self]
        both = summarise_words([*heard, *failed])
        return {
            **summarise_words(heard),
            "failed": len(failed),
            "wer_corpus_with_failed": both["wer_corpus"],
        }

    def __contains__(self, key: object) -> bool:
        return key in self._counted


def over_repeats(passes: Sequence[Json]) -> Json:
    """Every number of the passes as its mean and sample deviation (None for a single pass)."""
    flat = [_flat(one) for one in passes]
    columns = {name: [one[name] for one in flat if name in one] for name in flat[0]}
    return {
        name: {"mean": fmean(values), "sd": stdev(values) if len(values) > 1 else None}
        for name, values in columns.items()
        if len(values) == len(flat)
    }


_NOT_NUMBERS = ("clients", "interval", "failures", "groups")


def _flat(row: Json, head: str = "") -> dict[str, float]:
    """Numbers by dotted name: "ttft_ms.p50"."""
    flat: dict[str, float] = {}
    for name, value in row.items():
        if name in _NOT_NUMBERS or isinstance(value, bool):
            continue
        if isinstance(value, dict):
            flat |= _flat(value, f"{head}{name}.")
        elif isinstance(value, int | float):
            flat[head + name] = float(value)
    return flat
