"""The record of one sample of a run, and its form on disk."""

from dataclasses import asdict, dataclass, fields
from typing import Any

from benchmarks.client.exchange import Answer
from benchmarks.evaluation.tasks.task import Sample, Task

Key = tuple[str, int, str]


@dataclass(frozen=True)
class SampleRecord:
    """One request of a run: its place in the run, its times, its answer and the verdict.

    `load` and `repeat` name its pass. Times are in seconds: `began_s` counts from the start of that
    pass in its sitting, the others from `began_s`; RTF and throughput follow from them. `tokens`
    are those of the text. A record with an `error` has failed: it counts in every rate, and its
    answer is wrong.
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
        """Return the key, which is unique in a run."""
        return self.load, self.repeat, self.sample


COLUMNS = tuple(entry.name for entry in fields(SampleRecord))


@dataclass(frozen=True)
class PassPlace:
    """The place of a record: its pass, and the sitting that started at `start_s`."""

    load: str
    repeat: int
    sitting: int
    start_s: float


def build_record(
    task: Task, sample: Sample, answer: Answer, place: PassPlace, audio: str | None
) -> SampleRecord:
    """Build the record of an ended answer, with the task's verdict."""
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
        # A failed answer is wrong, even where a guess would have been right.
        right=None if verdict is None else verdict.right and answer.error is None,
        extracted=None if verdict is None else verdict.extracted,
        how=None if verdict is None else verdict.how,
    )


def record_to_json(record: SampleRecord) -> dict[str, Any]:
    """Convert a record to its stored form: floats to 0.1 ms, without empty values."""
    values = {
        name: round(value, 4) if isinstance(value, float) else value
        for name, value in asdict(record).items()
    }
    return {name: value for name, value in values.items() if value not in (None, "")}


def record_from_json(stored: dict[str, Any]) -> SampleRecord:
    """Restore a stored record."""
    empty: dict[str, Any] = dict.fromkeys(COLUMNS) | {"text": "", "group": ""}
    return SampleRecord(**(empty | stored))
