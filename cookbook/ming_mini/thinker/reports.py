"""Numbers of training steps, read from the device now and then: to read them waits for it."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

MOST_SKIPPED = 20
SKIPPED, NORM = "skipped", "norm"
Report = dict[str, Tensor]
"""Numbers of a step, left on the device. `SKIPPED` is 1 where no weight was moved, for its
gradient was not finite, and else 0."""


class Reports:
    """The steps since numbers were last read."""

    def __init__(self) -> None:
        self._recent: list[Report] = []
        self._in_a_row = 0

    def add(self, report: Report) -> None:
        """Take in a step's."""
        self._recent.append(report)

    def flush(self) -> dict[str, float]:
        """How many steps there were, and their `means`.

        Raises `FloatingPointError` if more than `MOST_SKIPPED` in a row were skipped.
        """
        steps, self._recent = read(self._recent), []
        for step in steps:
            self._in_a_row = self._in_a_row + 1 if step[SKIPPED] else 0
            if self._in_a_row > MOST_SKIPPED:
                raise FloatingPointError(f"no finite gradient for {self._in_a_row} steps")
        return {"steps": float(len(steps))} | means(steps)


def read(reports: Sequence[Report]) -> list[dict[str, float]]:
    """The numbers of reports, all fetched at once."""
    if not reports:
        return []
    values = iter(
        torch.stack([one.float() for report in reports for one in report.values()]).tolist()
    )
    return [{name: next(values) for name in report} for report in reports]


def means(steps: Sequence[dict[str, float]]) -> dict[str, float]:
    """Mean of every number over the steps that have it and were not skipped; how many were, and
    in how many of these a loss was not finite."""
    moved = [step for step in steps if not step[SKIPPED]]
    names = dict.fromkeys(name for step in moved for name in step if name != SKIPPED)
    found = {name: [step[name] for step in moved if name in step] for name in names}
    return {name: sum(one) / len(one) for name, one in found.items()} | _skipped(steps)


def _skipped(steps: Sequence[dict[str, float]]) -> dict[str, float]:
    counts = dict[str, float]()
    for step in steps:
        if step[SKIPPED]:
            infinite = [name for name in step if name != NORM and not math.isfinite(step[name])]
            for name in (SKIPPED, *(f"{SKIPPED}, {one}" for one in infinite)):
                counts[name] = counts.get(name, 0) + 1
    return counts
