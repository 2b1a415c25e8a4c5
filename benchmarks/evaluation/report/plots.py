"""Plots of runs: throughput and latency, times to the first audio, and timelines of requests."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

Json = dict[str, Any]
_THROUGHPUT = (
    ("tokens_per_s", "tok/s"),
    ("requests_per_s", "req/s"),
    ("audio_s_per_s", "audio-s/s"),
)
_LATENCY = (("ttft_ms", "TTFT"), ("ttfa_ms", "TTFA"))


class MatplotlibMissing(RuntimeError):
    """matplotlib is not installed."""


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise MatplotlibMissing(
            "`pip install matplotlib` for plots, or leave out --plots"
        ) from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def draw_plots(result: Json, folder: Path, name: str) -> list[Path]:
    """Draw all plots that a run has the numbers for, as PNG files in the folder.

    Raises:
        MatplotlibMissing: matplotlib is not installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    drawn = [
        _over_clients(result, folder / f"{name}-load.png"),
        _first_audio(result, folder / f"{name}-ttfa.png"),
        _timeline(result, folder / f"{name}-timeline.png"),
    ]
    return [path for path in drawn if path is not None]


def _closed(result: Json) -> list[tuple[float, Json]]:
    rows = [(row["load"].partition("/"), row["over_repeats"]) for row in result["summary"]]
    return sorted((float(load[2]), numbers) for load, numbers in rows if load[0] == "closed")


def _over_clients(result: Json, path: Path) -> Path | None:
    """Plot throughput and latency against concurrency; nothing for a single load."""
    rows = _closed(result)
    if len(rows) < 2:
        return None
    pyplot = _pyplot()
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4))
    clients = [count for count, _ in rows]
    for name, unit in _THROUGHPUT:
        _line(left, clients, [numbers.get(name) for _, numbers in rows], unit)
    for name, label in _LATENCY:
        for part in ("p50", "p95"):
            values = [numbers.get(f"{name}.{part}") for _, numbers in rows]
            _line(right, clients, values, f"{label} {part}")
    for axes, label in ((left, "a second"), (right, "milliseconds")):
        axes.set_xlabel("clients")
        axes.set_xticks(clients)
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
        axes.legend()
    return _save(pyplot, figure, result["protocol"], path)


def _line(axes: Any, x: Sequence[float], values: Sequence[Json | None], label: str) -> None:
    if any(value is None or value["mean"] == 0 for value in values):
        return
    means = [value["mean"] for value in values if value]
    spreads = [value["sd"] or 0.0 for value in values if value]
    axes.errorbar(x, means, yerr=spreads, marker="o", capsize=3, label=label)


def _first_audio(result: Json, path: Path) -> Path | None:
    """Plot the share of requests with audio over time, a line for each load."""
    loads = [row["load"] for row in result["summary"]]
    times = {
        load: sorted(
            1e3 * one["ttfa_s"]
            for one in result["records"]
            if one["load"] == load and "ttfa_s" in one and "error" not in one
        )
        for load in loads
    }
    if not any(times.values()):
        return None
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(figsize=(6, 4))
    for load, heard in times.items():
        axes.step(heard, [(index + 1) / len(heard) for index in range(len(heard))], label=load)
    axes.set_xlabel("milliseconds to the first audio")
    axes.set_ylabel("share of requests")
    axes.legend()
    return _save(pyplot, figure, result["protocol"], path)


def _timeline(result: Json, path: Path) -> Path | None:
    """Plot the stages of one request, for servers that report them."""
    if not result.get("timelines"):
        return None
    pyplot = _pyplot()
    timeline = result["timelines"][-1]
    stages = timeline["stages"]
    figure, axes = pyplot.subplots(figsize=(8, 0.4 * len(stages) + 1.2))
    for place, stage in enumerate(stages):
        ends = timeline["seconds"] if stage["ended_s"] is None else stage["ended_s"]
        axes.barh(place, 1e3 * (ends - stage["began_s"]), left=1e3 * stage["began_s"])
        if stage["first_s"] is not None:
            axes.plot(1e3 * stage["first_s"], place, "k|", markersize=14)
    axes.set_yticks(range(len(stages)), [stage["name"] for stage in stages])
    axes.invert_yaxis()
    axes.set_xlabel("milliseconds; | is a stage's first output")
    return _save(pyplot, figure, f"one request of {result['protocol']}", path)


def _save(pyplot: Any, figure: Any, title: str, path: Path) -> Path:
    figure.suptitle(title, fontsize=9)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return path
