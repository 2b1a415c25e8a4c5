"""Measure how well text is turned into words, how fast, and what that costs in memory.

    python -m benchmarks.evaluation.normalization --out benchmarks/results/normalization_cpu.json

Reads pairs of written and spoken text (`tests/normalization/data`), in both languages. Chinese
pairs without a Chinese character are counted apart and are given their language.
"""

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

from measurement.environment import fingerprint
from measurement.spoken_forms.pairs import Pair, read_pairs
from measurement.spoken_forms.verdict import CATASTROPHIC, Verdict, judge
from sglang_omni.normalization.language import to_language
from sglang_omni.normalization.normalizer import Normalizer, build_normalizer

PAIRS = Path("tests/normalization/data")
# A fresh process, without and with the rules.
_PROBE = """
import os, time
import psutil
me = psutil.Process()
before, start = me.memory_info().rss, time.perf_counter()
from sglang_omni.normalization.normalizer import build_normalizer
build_normalizer().normalize("The 1st of 20. 第 1 个。")
print(time.perf_counter() - start, (me.memory_info().rss - before) / 2**20)
"""

Row = dict[str, Any]


def read_and_judge(pair: Pair, normalizer: Normalizer) -> Verdict:
    """Return the verdict on the words for a pair."""
    language = to_language(pair.language) if pair.source.endswith("_bare") else None
    spoken = normalizer.normalize(pair.written, language=language)
    return judge(pair.written, spoken, pair.readings, pair.language)


def count_verdicts(name: str, verdicts: Iterable[Verdict]) -> Row:
    """Return the share of right and of catastrophic readings, in percent."""
    counts = Counter(verdicts)
    total = counts.total()
    lost = sum(counts[verdict] for verdict in CATASTROPHIC)
    return {
        "pairs": name,
        "count": total,
        "right": round(100 * counts["right"] / total, 1),
        "catastrophic": round(100 * lost / total, 1),
    }


def measure_accuracy(folder: Path, normalizer: Normalizer) -> list[Row]:
    """Return a row for each file, and one for each language."""
    rows = []
    for language in ("en", "zh"):
        verdicts: dict[str, list[Verdict]] = {}
        for pair in read_pairs(folder, language):
            verdicts.setdefault(pair.source, []).append(read_and_judge(pair, normalizer))
        rows += [count_verdicts(f"{language}/{name}", found) for name, found in verdicts.items()]
        shown = [v for name, found in verdicts.items() if not name.endswith("_bare") for v in found]
        rows.append(count_verdicts(language, shown))
    return rows


def measure_time(folder: Path, normalizer: Normalizer) -> Row:
    """Return the milliseconds that a text takes on one core, once the rules are loaded."""
    times = []
    for language in ("en", "zh"):
        for pair in read_pairs(folder, language):
            start = time.perf_counter()
            normalizer.normalize(pair.written)
            times.append(1e3 * (time.perf_counter() - start))
    times.sort()
    return {
        "ms_median": round(median(times), 3),
        "ms_p99": round(times[len(times) * 99 // 100], 3),
        "ms_max": round(times[-1], 3),
    }


def measure_load() -> Row:
    """Return the seconds and MiB that the rules take in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-c", _PROBE], capture_output=True, text=True, check=True
    )
    seconds, memory = map(float, done.stdout.split())
    return {"load_s": round(seconds, 3), "memory_mib": round(memory, 1)}


def main() -> None:
    """Measure, print a table and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=Path, default=PAIRS, help="folder with en/ and zh/")
    parser.add_argument("--out", type=Path, help="where to write the JSON")
    arguments = parser.parse_args()
    normalizer = build_normalizer()
    rows = measure_accuracy(arguments.pairs, normalizer)
    costs = measure_load() | measure_time(arguments.pairs, normalizer)
    for row in rows:
        print(
            "{pairs:16} {count:4d}  right {right:5.1f} %  lost {catastrophic:4.1f} %".format(**row)
        )
    print(json.dumps(costs))
    if arguments.out:
        document = {"environment": fingerprint(), "rows": rows, **costs}
        arguments.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
