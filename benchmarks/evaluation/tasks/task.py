"""What a task is: rows of a data set become requests, and answers become verdicts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from benchmarks.client.target import Request
from benchmarks.evaluation.datasets.source import Dataset, Row, load


@dataclass(frozen=True)
class Sample:
    """One request of a task. `id` is unique within it; `truth` is what its judge compares with;
    `group` is the subject that accuracies are also given for; `words` are what its speech must
    say, in tasks that listen, and empty where its own transcript says it."""

    id: str
    request: Request
    truth: Any = None
    group: str = ""
    words: str = ""


@dataclass(frozen=True)
class Verdict:
    """What an answer was taken for, and whether that is right. `how`: "parsed" as the convention
    says, "guessed" where the convention draws at random, "none" where nothing was found."""

    right: bool
    extracted: str | None
    how: Literal["parsed", "guessed", "none"] = "parsed"


@dataclass(frozen=True)
class Task:
    """One convention of asking and judging. Numbers of two variants are not comparable.

    `judge` is None where there is only speech to listen to; `language` of that speech is "en" or
    "zh", None where nobody listens.
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
    def speaks(self) -> bool:
        """Whether an answer without audio has failed."""
        return self.language is not None or self.variant.endswith("-to-speech")

    @property
    def full_name(self) -> str:
        """Name and variant, as one names it on the command line."""
        return f"{self.name}/{self.variant}"

    def samples(self, source: str, most: int | None = None) -> list[Sample]:
        """The first `most` samples of the data set in `source`, or all. Raises `DatasetError`."""
        from_train = load(self.shots, source) if self.shots else []
        built = self.build([*from_train, *load(self.dataset, source)])
        return built[:most]
