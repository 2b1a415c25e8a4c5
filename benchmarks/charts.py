"""Draw the charts of the documents from result files.

    python -m benchmarks.charts --output docs/charts

Needs the extra `bench`. A chart carries the numbers that it shows, so that a test can tell whether
it is the chart of today's result files.
"""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
COLOURS = ("#2563eb", "#94a3b8", "#059669")
Json = dict[str, Any]


@dataclass(frozen=True)
class Series:
    """The bars of one system or one load, in the order of the chart's groups."""

    name: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class Chart:
    """A chart of groups of bars: its words, the names of the groups, and the series."""

    title: str
    unit: str
    groups: tuple[str, ...]
    series: tuple[Series, ...]

    @property
    def numbers(self) -> str:
        """Return what the chart shows, as JSON."""
        return json.dumps(asdict(self), sort_keys=True)


def read(name: str) -> Json:
    """Return a result file."""
    found: Json = json.loads((RESULTS / name).read_text(encoding="utf-8"))
    return found


def chart_decoding() -> Chart:
    """Return the tokens that the thinker generates, beside SGLang's own model."""
    rows = read("thinker_h200_fp8_deepgemm.json")["rows"]
    clients = (1, 8, 16, 32, 64)

    def best(system: str, count: int) -> float:
        return max(
            row["tokens_per_s"]
            for row in rows
            if row["system"] == system and row["clients"] == count
        )

    return Chart(
        "Thinker in FP8 on one H200, random weights",
        "tokens a second, all clients together",
        tuple(f"{count} client{'s' * (count > 1)}" for count in clients),
        (
            Series("sglang-omni", tuple(best("plug-in", count) for count in clients)),
            Series("SGLang with DeepGEMM", tuple(best("stock", count) for count in clients)),
        ),
    )


def chart_speech() -> Chart:
    """Return the seconds of speech that the talker makes in a second."""
    streams = (1, 16, 32, 64, 128)
    files = {
        "H200, FP8": "talker_h200_fp8.json",
        "H200, bfloat16": "talker_h200.json",
        "H100, bfloat16": "talker_h100.json",
    }
    series = []
    for name, file in files.items():
        by_batch = {row["batch"]: row["audio_s_per_s"] for row in read(file)["rows"]}
        series.append(Series(name, tuple(by_batch.get(count, 0.0) for count in streams)))
    return Chart(
        "Talker at the released shapes, random weights",
        "seconds of speech a second",
        tuple(f"{count} voice{'s' * (count > 1)}" for count in streams),
        tuple(series),
    )


def chart_latency() -> Chart:
    """Return the times to the first token or sound of the whole system."""
    rows = read("serving_h200_fp8.json")["rows"]
    kinds = (("text", "ttft_ms"), ("image", "ttft_ms"), ("speech", "ttfa_ms"))

    def median(kind: str, field: str, clients: int) -> float:
        (row,) = (one for one in rows if one["chat"] == kind and one["amount"] == clients)
        return float(row[field]["p50"])

    return Chart(
        "Whole system on one H200, random weights, over HTTP",
        "milliseconds to the first token or sound, median",
        ("text", "a picture and a question", "an answer in speech"),
        tuple(
            Series(
                f"{clients} client{'s' * (clients > 1)}",
                tuple(median(kind, field, clients) for kind, field in kinds),
            )
            for clients in (1, 16)
        ),
    )


CHARTS: Mapping[str, Callable[[], Chart]] = {
    "decoding": chart_decoding,
    "speech": chart_speech,
    "latency": chart_latency,
}


def draw(chart: Chart, path: Path) -> None:
    """Write a chart as SVG, with its numbers as the description."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    pyplot.rcParams.update({"svg.hashsalt": "sglang-omni", "font.size": 11})
    figure, axes = pyplot.subplots(figsize=(8, 3.6))
    width = 0.8 / len(chart.series)
    for place, series in enumerate(chart.series):
        offset = (place - (len(chart.series) - 1) / 2) * width
        at = [group + offset for group in range(len(chart.groups))]
        bars = axes.bar(at, series.values, width * 0.92, label=series.name, color=COLOURS[place])
        labels = [f"{value:,.0f}" if value else "" for value in series.values]
        axes.bar_label(bars, labels, fontsize=8, padding=2)
    axes.set_xticks(range(len(chart.groups)), chart.groups)
    axes.set_title(chart.title, loc="left", fontweight="bold")
    axes.set_ylabel(chart.unit, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.tight_layout()
    metadata = {"Date": None, "Creator": None, "Description": chart.numbers}
    figure.savefig(path, format="svg", metadata=metadata, transparent=False)
    pyplot.close(figure)


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw all charts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="folder of the SVG files")
    parsed = parser.parse_args(arguments)
    parsed.output.mkdir(parents=True, exist_ok=True)
    for name, build in CHARTS.items():
        draw(build(), parsed.output / f"{name}.svg")


if __name__ == "__main__":
    main()
