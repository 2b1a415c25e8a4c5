"""Numbers of training steps.

They are read from the device now and then, because reading waits for it.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

MAX_SKIPPED = 20
SKIPPED, NORM = "skipped", "norm"
Report = dict[str, Tensor]
"""Numbers of a step, left on the device. `SKIPPED` is 1 where no weight was moved, for its
gradient was not finite, and else 0."""


class Reports:
    """The reports of the steps since numbers were last read."""

    def __init__(self) -> None:
        self._recent: list[Report] = []
        self._in_a_row = 0

    def add(self, report: Report) -> None:
        """Add the report of a step."""
        self._recent.append(report)

    def flush(self) -> dict[str, float]:
        """Return the number of steps, and their mean report.

        Raises:
            FloatingPointError: More than `MAX_SKIPPED` steps in a row were skipped.
        """
        steps, self._recent = read_reports(self._recent), []
        for step in steps:
            self._in_a_row = self._in_a_row + 1 if step[SKIPPED] else 0
            if self._in_a_row > MAX_SKIPPED:
                raise FloatingPointError(f"no finite gradient for {self._in_a_row} steps")
        return {"steps": float(len(steps))} | mean_report(steps)


def read_reports(reports: Sequence[Report]) -> list[dict[str, float]]:
    """Fetch the numbers of all reports at once."""
    if not reports:
        return []
    values = iter(
        torch.stack([one.float() for report in reports for one in report.values()]).tolist()
    )
    return [{name: next(values) for name in report} for report in reports]


def mean_report(steps: Sequence[dict[str, float]]) -> dict[str, float]:
    """Return the mean of every number over the steps that have it and were not skipped.

    Also has how many steps were skipped, and in how many of these a loss was not finite.
    """
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
