"""Times of engines as they were measured, from the files in `benchmarks/results`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

RESULTS = Path(__file__).parents[1] / "results"
Row = Mapping[str, Any]


@dataclass(frozen=True)
class StepTimes:
    """Seconds of a step by the number of its rows, between which they are interpolated.

    Fewer rows than the least that was measured take as long. Beyond the largest number there is no
    time: an engine takes no more rows.
    """

    rows: tuple[int, ...]
    seconds: tuple[float, ...]

    @property
    def most(self) -> int:
        """Return the largest measured number of rows."""
        return self.rows[-1]

    def at(self, rows: int) -> float:
        """Return the time of a step. Raises `ValueError` for more rows than were measured."""
        if rows > self.most:
            raise ValueError(f"no step of {rows} rows was measured, at most {self.most}")
        return float(np.interp(rows, self.rows, self.seconds))


@dataclass(frozen=True)
class ThinkerTimes:
    """A thinker: decode steps by their requests, and prefills by their tokens."""

    step: StepTimes
    prefill: StepTimes

    def read(self, tokens: int) -> float:
        """Return the time of reading so many tokens, in as many prefills as it takes."""
        whole, rest = divmod(tokens, self.prefill.most)
        return whole * self.prefill.at(self.prefill.most) + (self.prefill.at(rest) if rest else 0)


@dataclass(frozen=True)
class TalkerTimes:
    """A talker: steps by streams, and what a step that admits texts takes besides.

    `admission_s` for any texts and `text_s` for each were chosen so that the simulation agrees with
    the measured texts to speak (`speech_h200.json`, `speech_h200_128.json`) and listeners.
    """

    step: StepTimes
    admission_s: float = 0.0030
    text_s: float = 0.0012

    def admission(self, texts: int) -> float:
        """Return what so many new texts add to a step."""
        return self.admission_s + self.text_s * texts if texts else 0.0


def read_result(name: str) -> dict[str, Any]:
    """Read a result file. Raises `FileNotFoundError`."""
    content: dict[str, Any] = json.loads((RESULTS / name).read_text("utf-8"))
    return content


def thinker_times(name: str) -> ThinkerTimes:
    """Read a file of `benchmarks.thinker`: steps of the plug-in, and prefills of its prompts."""
    result = read_result(name)
    prompt = result["jobs"][0]["prompt"]
    rows = [
        {**row, "tokens": row["clients"] * prompt, "prefill_ms": row["ttft_ms"]["p50"]}
        for row in result["rows"]
        if row["system"] == "plug-in"
    ]
    return ThinkerTimes(_steps(rows, "clients", "tpot_ms"), _steps(rows, "tokens", "prefill_ms"))


def talker_times(name: str) -> TalkerTimes:
    """Read a file of `benchmarks.talker`: its steps alone."""
    return TalkerTimes(_steps(read_result(name)["rows"], "batch", "step_ms"))


def audio_encoder_s(name: str, side: str = "audio 30 s") -> float:
    """Return the seconds that the encoder takes for a recording, from `benchmarks.encoders`."""
    rows = [row for row in read_result(name)["rows"] if row["media"] == side and row["batch"] == 1]
    return float(rows[0]["ms"]) / 1000


def serving_row(name: str, load: str, amount: int, chat: str | None = None) -> Row:
    """Return the row of a load from a file of `benchmarks.serving`. Raises `KeyError`."""
    for row in read_result(name)["rows"]:
        if (row["load"], row["amount"], row.get("chat")) == (load, amount, chat):
            found: Row = row
            return found
    raise KeyError(f"{name} has no row for {load} {amount} {chat or ''}")


def _steps(rows: Sequence[Row], key: str, value: str) -> StepTimes:
    sizes = sorted({row[key] for row in rows})
    times = (mean(row[value] for row in rows if row[key] == size) / 1000 for size in sizes)
    return StepTimes(tuple(sizes), tuple(times))
