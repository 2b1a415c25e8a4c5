"""Numbers to compare: those of result files, and published ones."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Json = dict[str, Any]
OURS = "this project"
PRECISIONS = {"bf16": "bf16", "fp8": "FP8", "int4": "four bits"}
PUBLISHED = Path(__file__).parent / "published.json"


@dataclass(frozen=True)
class Figure:
    """One number: what was measured, its unit, load, protocol, system, hardware and source.

    `deviation` is that of repeats. Numbers of different protocols are not comparable.
    """

    measure: str
    unit: str
    load: str
    value: float
    protocol: str
    system: str
    hardware: str
    source: str
    deviation: float | None = None


def read_published(path: Path = PUBLISHED) -> Iterator[Figure]:
    """Read the published numbers for this model, as their authors give them; not measured here."""
    for row in json.loads(path.read_text(encoding="utf-8")):
        values = row.pop("values")
        for load, value in values.items():
            yield Figure(load=load, value=value, **row)


def find_runs(paths: Sequence[Path]) -> Iterator[Path]:
    """Return every result that is named; a folder of runs stands for all of them."""
    for path in paths:
        if path.is_dir() and not (path / "run.json").is_file():
            yield from sorted(found.parent for found in path.glob("**/run.json"))
        else:
            yield path


def read_result(path: Path) -> Json:
    """Read a result file, or the one in the folder of a run. Raises `FileNotFoundError`."""
    file = path / "run.json" if path.is_dir() else path
    result: Json = json.loads(file.read_text(encoding="utf-8"))
    return result


def figures_of(result: Json, source: str) -> Iterator[Figure]:
    """Return the figures of one result file, by its kind."""
    if "protocol" in result:
        yield from _of_run(result, source)
    elif "jobs" in result:
        yield from _of_thinker(result, source)
    else:
        yield from _of_serving(result, source)


# The numbers of a run by dotted name: measure, unit, factor.
_SPEEDS = {
    "requests_per_s": ("requests", "req/s", 1.0),
    "tokens_per_s": ("text out", "tok/s", 1.0),
    "audio_s_per_s": ("speech out", "audio-s/s", 1.0),
    "ttft_ms.mean": ("TTFT, mean", "ms", 1.0),
    "ttft_ms.p50": ("TTFT, p50", "ms", 1.0),
    "ttft_ms.p95": ("TTFT, p95", "ms", 1.0),
    "ttft_ms.p99": ("TTFT, p99", "ms", 1.0),
    "tpot_ms.mean": ("TPOT, mean", "ms", 1.0),
    "ttfa_ms.mean": ("TTFA, mean", "ms", 1.0),
    "ttfa_ms.p50": ("TTFA, p50", "ms", 1.0),
    "ttfa_ms.p95": ("TTFA, p95", "ms", 1.0),
    "ttfa_ms.p99": ("TTFA, p99", "ms", 1.0),
    "rtf.mean": ("RTF, mean", "", 1.0),
    "underrun_requests": ("requests with underruns", "", 1.0),
    "failed": ("failed", "", 1.0),
    "accuracy.share": ("accuracy", "%", 100.0),
}
# Numbers of speech, which depend on the recogniser and on how items are averaged.
_HEARD = {
    "words.wer_corpus_with_failed": ("word errors, corpus", "%", 100.0),
    "words.wer_mean": ("word errors, mean of items", "%", 100.0),
}
_ONLY_IF_SPOKEN = ("audio_s_per_s", "ttfa_ms", "rtf", "underrun_requests")


def _of_run(result: Json, source: str) -> Iterator[Figure]:
    hardware, protocol = _hardware(result, result["config"]["system"]), result["protocol"]
    heard = f"{protocol}, heard by {result.get('recogniser')}"
    for row in result["summary"]:
        numbers = row["over_repeats"]
        silent = numbers["audio_s_per_s"]["mean"] == 0
        for names, named in ((_SPEEDS, protocol), (_HEARD, heard)):
            for name, (measure, unit, factor) in names.items():
                if name not in numbers or (silent and name.startswith(_ONLY_IF_SPOKEN)):
                    continue
                value, spread = numbers[name]["mean"] * factor, numbers[name]["sd"]
                spread = None if spread is None else spread * factor
                about = (named, OURS, hardware, source, spread)
                yield Figure(measure, unit, row["load"], value, *about)


def _of_thinker(result: Json, source: str) -> Iterator[Figure]:
    """Return the best round of every system and number of clients."""
    jobs = {job["system"]: job for job in result["jobs"]}
    best: dict[tuple[str, int], float] = {}
    for row in result["rows"]:
        key = row["system"], row["clients"]
        best[key] = max(best.get(key, 0.0), row["tokens_per_s"])
    for (system, clients), value in best.items():
        job = jobs[system]
        name = (
            OURS if system == "plug-in" else f"{system.replace('stock', 'stock SGLang')}, text only"
        )
        # Older files say whether weights were in FP8.
        precision = PRECISIONS[job.get("weights") or ("fp8" if job["fp8"] else "bf16")]
        hardware = f"{job['tp']} x {result['environment']['device']}, {precision}"
        about = ("benchmarks.thinker.decoding, random weights", name, hardware, source)
        yield Figure("text out", "tok/s", f"closed/{clients}", value, *about)


def _of_serving(result: Json, source: str) -> Iterator[Figure]:
    hardware = _hardware(result, result["arguments"].get("system"))
    for row in result["rows"]:
        about = (f"benchmarks.serving.chats, {row['chat']}", OURS, hardware, source)
        load = f"{row['load']}/{row['amount']:g}"
        for name in ("requests_per_s", "tokens_per_s", "audio_s_per_s"):
            measure, unit, _ = _SPEEDS[name]
            yield Figure(measure, unit, load, row[name], *about)
        for name in ("ttft_ms", "ttfa_ms"):
            for part in ("p50", "p95", "p99"):
                if (value := row[name][part]) is not None:
                    measure, unit, _ = _SPEEDS[f"{name}.{part}"]
                    yield Figure(measure, unit, load, value, *about)


def _hardware(result: Json, named: str | None) -> str:
    environment = result["environment"]
    return named or f"{environment['devices']} x {environment['device']}"
