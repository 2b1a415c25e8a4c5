"""How one sample of a run went, and how records are put on disk."""

from dataclasses import asdict, dataclass, fields
from typing import Any

from benchmarks.client.exchange import Answer
from benchmarks.evaluation.tasks.task import Sample, Task

Key = tuple[str, int, str]


@dataclass(frozen=True)
class SampleRecord:
    """One request of a run: which, how it went, what came, and what it was taken for.

    `load` and `repeat` name the pass it belongs to. Times in seconds; `began_s` counts from the
    start of that pass in the sitting that made it, the others from `began_s`; RTF and throughput
    follow from them. `tokens` are those of the text. A record with an `error` failed: it is counted
    in every rate, and its answer is wrong.
    """

    load: str
    repeat: int
    sample: str
    sitting: int
    began_s: float
    took_s: float
    ttft_s: float | None
    tpot_s: float | None
    ttfa_s: float | None
    audio_s: float
    underruns: int
    dry_s: float
    left_s: float
    prompt_tokens: int
    tokens: int
    finish: str | None
    status: int | None
    error: str | None
    request_id: str | None
    text: str
    audio: str | None = None
    group: str = ""
    right: bool | None = None
    extracted: str | None = None
    how: str | None = None

    @property
    def key(self) -> Key:
        """What no two records of a run have in common."""
        return self.load, self.repeat, self.sample


COLUMNS = tuple(entry.name for entry in fields(SampleRecord))


@dataclass(frozen=True)
class Place:
    """Where a record belongs: its pass, and the sitting that began at `start_s`."""

    load: str
    repeat: int
    sitting: int
    start_s: float


def record(
    task: Task, sample: Sample, answer: Answer, place: Place, audio: str | None
) -> SampleRecord:
    """The record of an answer that has ended, judged as the task does."""
    verdict = None
    if task.judge is not None:
        verdict = task.judge(sample, "" if answer.error else answer.said)
    playback = answer.audio.playback
    return SampleRecord(
        load=place.load,
        repeat=place.repeat,
        sample=sample.id,
        sitting=place.sitting,
        began_s=answer.began_s - place.start_s,
        took_s=answer.took_s,
        ttft_s=answer.ttft_s,
        tpot_s=answer.tpot_s,
        ttfa_s=answer.ttfa_s,
        audio_s=playback.audio_s,
        underruns=playback.underruns,
        dry_s=playback.dry_s,
        left_s=answer.left_s,
        prompt_tokens=answer.prompt_tokens,
        tokens=answer.tokens,
        finish=answer.finish,
        status=answer.status,
        error=answer.error,
        request_id=answer.request_id,
        text=answer.said,
        audio=audio,
        group=sample.group,
        # An answer that failed is wrong, even where a guess would have been right.
        right=None if verdict is None else verdict.right and answer.error is None,
        extracted=None if verdict is None else verdict.extracted,
        how=None if verdict is None else verdict.how,
    )


def as_json(one: SampleRecord) -> dict[str, Any]:
    """A record as it is stored: floats to 0.1 ms, without what has no value."""
    values = {
        name: round(value, 4) if isinstance(value, float) else value
        for name, value in asdict(one).items()
    }
    return {name: value for name, value in values.items() if value not in (None, "")}


def from_json(stored: dict[str, Any]) -> SampleRecord:
    """The record that was stored."""
    empty: dict[str, Any] = dict.fromkeys(COLUMNS) | {"text": "", "group": ""}
    return SampleRecord(**(empty | stored))
