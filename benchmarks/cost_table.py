"""Say what a GPU-hour gives: tokens of text and seconds of speech, beside published systems.

    python -m benchmarks.cost_table            # print the tables
    python -m benchmarks.cost_table --write    # put them into docs/comparison.md

The figures are those of the files in `benchmarks/results`, the best round of each, and the
published ones of `benchmarks/evaluation/report/published.json`. A file that is not there has no
row. A test holds the document to the files.
"""

import argparse
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.evaluation.report.figures import PRECISIONS, read_published

RESULTS = Path(__file__).parent / "results"
DOCUMENT = Path(__file__).parents[1] / "docs" / "comparison.md"
START, END = "<!-- benchmarks.cost_table -->", "<!-- end -->"
OURS = "sglang-omni, this repository"
THINKER_FILES = (
    "thinker_h100_int4.json",
    "thinker_h200_int4.json",
    "thinker_h200_fp8_deepgemm.json",
    "thinker_h200_tp2_bf16.json",
)
SERVING_FILES = (
    "sharing_h100_own.json",
    "serving_h200_int4.json",
    "serving_h200_fp8.json",
)
SPEECH_FILES = ("speech_h200.json", "speech_h200_128.json")
SYSTEM_NAMES = {"plug-in": OURS, "stock": "SGLang's own BailingMoeV2, text only"}
TEXT_CLIENTS = (1, 16, 32, 64)
HOUR_S = 3600
PUBLISHED_TEXT, PUBLISHED_SPEECH = "text out", "speech out"


@dataclass(frozen=True)
class Rate:
    """What a system makes a second for so many clients, on some GPUs.

    Attributes:
        system: The name of the system, and who published it if that was not measured here.
        what: What was asked of it.
        gpus: Number and kind of GPUs, and the precision.
        num_gpus: Number of GPUs.
        clients: Clients at once.
        per_s: Tokens or seconds of speech a second, all clients together.
    """

    system: str
    what: str
    gpus: str
    num_gpus: int
    clients: int
    per_s: float

    @property
    def per_gpu_hour(self) -> float:
        """Return what a GPU makes in an hour."""
        return self.per_s * HOUR_S / self.num_gpus


def read_results(folder: Path, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the result files that are there."""
    for name in names:
        if (folder / name).exists():
            yield json.loads((folder / name).read_text(encoding="utf-8"))


def list_text_rates(folder: Path = RESULTS) -> list[Rate]:
    """Return the tokens a second of the thinker alone, measured and published."""
    rates = []
    for result in read_results(folder, THINKER_FILES):
        jobs = {job["system"]: job for job in result["jobs"]}
        for (system, clients), per_s in find_best_rounds(result["rows"]).items():
            if system not in SYSTEM_NAMES:
                continue
            job = jobs[system]
            # Older files say whether weights were in FP8.
            weights = job.get("weights") or ("fp8" if job["fp8"] else "bf16")
            gpus = f"{format_gpus(job['tp'], result)}, {PRECISIONS[weights]}"
            rates.append(Rate(SYSTEM_NAMES[system], "", gpus, job["tp"], clients, per_s))
    return rates + list_published(PUBLISHED_TEXT)


def list_speech_rates(folder: Path = RESULTS) -> list[Rate]:
    """Return the seconds of speech a second of whole systems and of talkers."""
    rates = []
    for result in read_results(folder, SERVING_FILES):
        gpus = f"{format_gpus(1, result)}, {read_precision(result)}"
        for row in result["rows"]:
            if row["chat"] == "speech":
                what = "spoken answers of the whole system, streamed"
                rates.append(Rate(OURS, what, gpus, 1, int(row["amount"]), row["audio_s_per_s"]))
    for result in read_results(folder, SPEECH_FILES):
        for row in result["rows"]:
            if row["load"] == "closed":
                what = "texts read aloud, streamed"
                clients, per_s = int(row["amount"]), row["audio_s_per_s"]
                rates.append(Rate(OURS, what, format_gpus(1, result), 1, clients, per_s))
    return rates + list_published(PUBLISHED_SPEECH)


def find_best_rounds(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, int], float]:
    """Return the most tokens a second, by system and number of clients."""
    best: dict[tuple[str, int], float] = {}
    for row in rows:
        key = row["system"], row["clients"]
        best[key] = max(best.get(key, 0.0), row["tokens_per_s"])
    return best


def list_published(measure: str) -> list[Rate]:
    """Return what others publish of one measure."""
    rates = []
    for figure in read_published():
        if figure.measure == measure:
            num_gpus = int(figure.hardware.split()[0])
            what = figure.protocol.rsplit(", ", 1)[-1] if measure == PUBLISHED_SPEECH else ""
            what = f"texts read aloud, {what}" if what else ""
            clients = int(figure.load.removeprefix("closed/"))
            system = f"{figure.system}, published"
            rates.append(Rate(system, what, figure.hardware, num_gpus, clients, figure.value))
    return rates


def format_gpus(count: int, result: Mapping[str, Any]) -> str:
    """Return number and kind of GPUs."""
    return f"{count} x {result['environment']['device'].split()[1]}"


def read_precision(result: Mapping[str, Any]) -> str:
    """Return the precision of the thinker of a served system, from its description."""
    found = re.search(r"thinker (?:in )?(FP8|four bits|bf16)", result["arguments"]["system"])
    if found is None:
        raise ValueError(f"no precision in {result['arguments']['system']!r}")
    return found[1]


def format_tables(folder: Path = RESULTS) -> str:
    """Return both tables as Markdown."""
    return f"{format_text_table(list_text_rates(folder))}\n\n" + format_speech_table(
        list_speech_rates(folder)
    )


def format_text_table(rates: Sequence[Rate]) -> str:
    """Return a row for each system, with a column for each number of clients."""
    head = ["tokens of text a GPU-hour, in thousands", "GPUs"]
    lines = [format_line([*head, *(f"{n} client{'s' * (n > 1)}" for n in TEXT_CLIENTS)])]
    lines.append(format_line(["---"] * (2 + len(TEXT_CLIENTS))))
    for system, gpus in dict.fromkeys((rate.system, rate.gpus) for rate in rates):
        found = {r.clients: r for r in rates if (r.system, r.gpus) == (system, gpus)}
        cells = [f"{found[n].per_gpu_hour / 1e3:,.0f}" if n in found else "" for n in TEXT_CLIENTS]
        lines.append(format_line([system, gpus, *cells]))
    return "\n".join(lines)


def format_speech_table(rates: Sequence[Rate]) -> str:
    """Return a row for each system and number of clients."""
    lines = [format_line(["", "GPUs", "clients", "seconds of speech a GPU-hour"])]
    lines.append(format_line(["---"] * 4))
    for rate in rates:
        hour = f"{round(rate.per_gpu_hour, -2):,.0f}"
        lines.append(
            format_line([f"{rate.system}: {rate.what}", rate.gpus, str(rate.clients), hour])
        )
    return "\n".join(lines)


def format_line(cells: Sequence[str]) -> str:
    """Return a line of a table."""
    return f"| {' | '.join(cells)} |"


def replace_tables(text: str, tables: str) -> str:
    """Return a document with these tables between its two marks.

    Raises:
        ValueError: The marks are not there.
    """
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not start or not end:
        raise ValueError(f"no {START} and {END} in the document")
    return f"{before}{START}\n\n{tables}\n\n{END}{after}"


def main(command: Sequence[str] | None = None) -> None:
    """Print the tables, or write them into the document."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"into {DOCUMENT.name}")
    options = parser.parse_args(command)
    tables = format_tables()
    if options.write:
        text = DOCUMENT.read_text(encoding="utf-8")
        DOCUMENT.write_text(replace_tables(text, tables), encoding="utf-8")
    else:
        print(tables)


if __name__ == "__main__":
    main()
