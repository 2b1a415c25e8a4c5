"""Print our results beside what others have published for this model, with the hardware of each.

    python -m benchmarks.published benchmarks/results/thinker_h200_fp8.json serving_h200.json

It takes files of `benchmarks.thinker` and `benchmarks.serving`. Published figures are as their
authors give them; they were not measured here, and loads differ in prompts and lengths.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Figure:
    """One number: what was measured, at how many clients, in which unit, by what and on what."""

    measure: str
    clients: int
    value: float
    unit: str
    system: str
    hardware: str


_THINKER, _TTFA = "text: decode throughput", "chat with speech: TTFA, mean"
_FOUR = "4 x H100, bf16"


def _series(
    measure: str, unit: str, system: str, hardware: str, values: dict[int, float]
) -> Iterator[Figure]:
    for clients, value in values.items():
        yield Figure(measure, clients, value, unit, system, hardware)


VLLM_OMNI = {1: 109.6, 2: 198.9, 4: 355.7, 8: 573.4, 16: 887.9, 32: 1060.5}
MSTAR = {1: 104.5, 2: 164.0, 4: 257.0, 8: 350.0, 16: 410.0, 32: 499.0}
SGLANG_OMNI_TTFA = {1: 236.0, 2: 593.0, 4: 1269.0, 8: 2675.0, 16: 4474.0}

PUBLISHED = (
    *_series(_THINKER, "tok/s", "vllm-omni 0.19", _FOUR, VLLM_OMNI),
    *_series(_THINKER, "tok/s", "mstar", _FOUR, MSTAR),
    Figure("image: TTFT", 1, 87.0, "ms", "vllm-omni 0.19", _FOUR),
    *_series(_TTFA, "ms", "sglang-omni (cookbook)", "5 x H100", SGLANG_OMNI_TTFA),
    Figure("speech: streaming", 4, 1.503, "req/s", "sglang-omni (cookbook)", "3 x H200"),
    Figure("speech: streaming", 4, 9.71, "audio-s/s", "sglang-omni (cookbook)", "3 x H200"),
    Figure("speech: whole files", 4, 4.606, "req/s", "sglang-omni (cookbook)", "3 x H200"),
    Figure("speech: whole files", 4, 29.99, "audio-s/s", "sglang-omni (cookbook)", "3 x H200"),
)


def ours(result: dict[str, Any]) -> Iterator[Figure]:
    """The figures of one result file."""
    yield from _of_thinker(result) if "jobs" in result else _of_serving(result)


def _of_thinker(result: dict[str, Any]) -> Iterator[Figure]:
    """The best round of every system and number of clients."""
    jobs = {job["system"]: job for job in result["jobs"]}
    best: dict[tuple[str, int], float] = {}
    for row in result["rows"]:
        key = row["system"], row["clients"]
        best[key] = max(best.get(key, 0.0), row["tokens_per_s"])
    for (system, clients), value in best.items():
        job = jobs[system]
        name = "this project" if system == "plug-in" else "stock SGLang, text only"
        precision = "FP8" if job["fp8"] else "bf16"
        hardware = f"{job['tp']} x {result['environment']['device']}, {precision}"
        yield Figure(_THINKER, clients, value, "tok/s", name, hardware)


def _of_serving(result: dict[str, Any]) -> Iterator[Figure]:
    environment = result["environment"]
    hardware = result["arguments"].get("system") or (
        f"{environment['devices']} x {environment['device']}"
    )
    for row in result["rows"]:
        if row["load"] != "closed":
            continue
        for measure, value, unit in _measures(row):
            if value is not None:
                yield Figure(measure, int(row["amount"]), value, unit, "this project", hardware)


def _measures(row: dict[str, Any]) -> Iterator[tuple[str, float | None, str]]:
    kind = row["chat"]
    yield f"{kind}: TTFT", row["ttft_ms"]["p50"], "ms"
    yield f"{kind}: requests", row["requests_per_s"], "req/s"
    if kind == "speech":
        yield "chat with speech: TTFA, p50", row["ttfa_ms"]["p50"], "ms"
        yield "chat with speech: TTFA, p95", row["ttfa_ms"]["p95"], "ms"
        yield "chat with speech", row["audio_s_per_s"], "audio-s/s"
        yield "chat with speech: underruns", float(row["underruns"]), ""


def table(figures: Sequence[Figure]) -> str:
    """Markdown: a row for each measure, system and hardware, a column for each client count."""
    columns = sorted({figure.clients for figure in figures})
    lines: dict[tuple[str, str, str, str], dict[int, float]] = {}
    for one in sorted(figures, key=lambda one: (one.measure, one.unit)):
        key = one.measure, one.unit, one.system, one.hardware
        lines.setdefault(key, {})[one.clients] = one.value
    text = ["| | | | " + " | ".join(f"c{count}" for count in columns) + " |"]
    text.append("|---" * (3 + len(columns)) + "|")
    for (measure, unit, system, hardware), values in lines.items():
        cells = [_number(values[count]) if count in values else "" for count in columns]
        label = f"{measure} ({unit})" if unit else measure
        text.append(f"| {label} | {system} | {hardware} | " + " | ".join(cells) + " |")
    return "\n".join(text)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", type=Path, nargs="*")
    options = parser.parse_args()
    figures = list(PUBLISHED)
    for path in options.files:
        figures += ours(json.loads(path.read_text(encoding="utf-8")))
    print(table(figures))


if __name__ == "__main__":
    main()
