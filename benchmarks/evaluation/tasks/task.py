"""A task: rows of a data set become requests, and answers become verdicts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from benchmarks.client.target import Request
from benchmarks.evaluation.datasets.source import Dataset, Row, load_rows


@dataclass(frozen=True)
class Sample:
    """One request of a task.

    `id` is unique within the task. `truth` is what the judge compares with. `group` is the subject,
    for which accuracies are also given. `words` is the text that its speech must say, for tasks
    with speech; empty where the server's own transcript is the reference.
    """

    id: str
    request: Request
    truth: Any = None
    group: str = ""
    words: str = ""


@dataclass(frozen=True)
class Verdict:
    """The parsed answer, and whether it is right.

    `how` is "parsed" as the convention says, "guessed" where the convention draws at random, or
    "none" where nothing was found.
    """

    right: bool
    extracted: str | None
    how: Literal["parsed", "guessed", "none"] = "parsed"


@dataclass(frozen=True)
class Task:
    """One convention of asking and judging. Numbers of two variants are not comparable.

    `judge` is None for tasks with speech alone. `language` is that of the speech to transcribe:
    "en", "zh" or None.
    """

    name: str
    variant: str
    dataset: Dataset
    build: Callable[[Sequence[Row]], list[Sample]]
    judge: Callable[[Sample, str], Verdict] | None = None
    language: Literal["en", "zh"] | None = None
    shots: Dataset | None = None
    """Where worked examples come from; `build` then gets those rows before the others."""

    @property
    def requires_speech(self) -> bool:
        """Return whether an answer without audio has failed."""
        return self.language is not None or self.variant.endswith("-to-speech")

    @property
    def full_name(self) -> str:
        """Return name and variant, as on the command line."""
        return f"{self.name}/{self.variant}"

    def samples(self, source: str, most: int | None = None) -> list[Sample]:
        """Return the first `most` samples of the data set in `source`, or all.

        Raises `DatasetError`.
        """
        from_train = load_rows(self.shots, source) if self.shots else []
        built = self.build([*from_train, *load_rows(self.dataset, source)])
        return built[:most]
