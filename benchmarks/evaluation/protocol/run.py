"""One run: every sample of a task under every load, with repeats.

It has one folder and one JSON file.

The folder has `journal.jsonl` from the start, `run.json` when everything is complete, and `audio/`
where the task is judged by its speech.
"""

import asyncio
import json
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from benchmarks.client.exchange import Answer
from benchmarks.client.target import Target, fetch_timeline
from benchmarks.evaluation.protocol.journal import Journal, StoredRun, read_journal
from benchmarks.evaluation.protocol.passes import LoadPlan, run_pass, warm_up
from benchmarks.evaluation.protocol.record import PassPlace, build_record, record_to_json
from benchmarks.evaluation.protocol.summary import RunTranscripts, summarise_pass, summarise_repeats
from benchmarks.evaluation.tasks import TASKS
from benchmarks.evaluation.tasks.task import Sample
from measurement.environment import fingerprint
from sglang_omni.media.wav import build_header

Json = dict[str, Any]
TIMELINES = "timelines.json"
# The server's address and credentials do not change what is measured.
NOT_PROTOCOL = ("url", "key_variable", "timeout_s")


@dataclass(frozen=True)
class RunConfig:
    """The configuration of a run.

    `source` is where the rows come from; `samples` None takes all; `system` describes the server
    for tables: GPUs and precision.
    """

    task: str
    source: str
    samples: int | None
    loads: tuple[str, ...]
    repeats: int
    warm_up: int
    target: Target
    preset: str | None = None
    system: str = ""

    def as_json(self) -> Json:
        """Return the configuration as it is in the file of the run."""
        target = {k: v for k, v in asdict(self.target).items() if k not in NOT_PROTOCOL}
        own = {k: v for k, v in asdict(self).items() if k != "target"}
        return own | {"loads": list(self.loads), "target": target}

    @property
    def protocol(self) -> str:
        """Return the protocol, which must be equal for runs whose speeds share a column."""
        source = "" if self.source.startswith("hub") else f", {_kind(self.source)}"
        count = "all" if self.samples is None else f"first {self.samples}"
        how = "streamed" if self.target.streaming else "whole answers"
        name = f"{self.preset}: " if self.preset else ""
        return f"{name}{self.task}, {count}{source}, {how}"


def _kind(source: str) -> str:
    return "bundled" if source == "fixture" else "a folder"


class Run:
    """A run in its folder, new or continued."""

    def __init__(self, config: RunConfig, folder: Path) -> None:
        """Load the samples.

        Raises:
            DatasetError: The data set is missing or malformed.
            UnsupportedRequest: The server's API cannot express the requests.
        """
        self.config, self.folder = config, folder
        self.task = TASKS[config.task]
        self.samples = self.task.samples(config.source, config.samples)
        config.target.call(self.samples[0].request)
        self._journal = folder / "journal.jsonl"

    def _passes(self) -> Iterator[tuple[LoadPlan, int]]:
        for name in self.config.loads:
            for repeat in range(self.config.repeats):
                yield LoadPlan.of(name), repeat

    def generate(self) -> None:
        """Send the requests that have no record yet.

        Raises `RunMismatch` if the folder has another run.
        """
        with Journal(self._journal, self.config.as_json()) as journal:
            total = len(self.samples) * len(self.config.loads) * self.config.repeats
            done = len(journal.stored.records)
            with tqdm(total=total, initial=done, desc=self.config.task, unit="req") as bar:
                asyncio.run(self._run_passes(journal, bar))
        self._save_timelines()

    def _save_timelines(self) -> None:
        """Save the timeline of a request of each load while the server still has it."""
        path = self.folder / TIMELINES
        if self.config.target.dialect != "ours" or path.is_file():
            return
        stored = read_journal(self._journal, self.config.as_json())
        last_ids = {
            record.load: record.request_id
            for record in stored.records.values()
            if record.request_id
        }
        timelines = [
            fetch_timeline(self.config.target, request_id) for request_id in last_ids.values()
        ]
        path.write_text(
            json.dumps([timeline for timeline in timelines if timeline]) + "\n", encoding="utf-8"
        )

    async def _run_passes(self, journal: Journal, bar: "tqdm[Any]") -> None:
        is_warm = False
        for load, repeat in self._passes():
            keys = {(load.name, repeat, sample.id): sample for sample in self.samples}
            missing = [keys[key] for key in journal.stored.missing(keys)]
            if not missing:
                continue
            if not is_warm:
                clients = int(max(1, min(load.amount, self.config.warm_up)))
                await warm_up(self.config.target, self.samples, self.config.warm_up, clients)
                is_warm = True
            await self._run_pass(journal, bar, load, repeat, missing)

    async def _run_pass(
        self,
        journal: Journal,
        bar: "tqdm[Any]",
        load: LoadPlan,
        repeat: int,
        samples: Sequence[Sample],
    ) -> None:
        place = PassPlace(load.name, repeat, journal.sitting, time.monotonic())

        def on_answer(sample: Sample, answer: Answer) -> None:
            if answer.error is None and self._is_missing_audio(answer):
                answer.error = "an answer without audio"
            audio = self._write_audio(sample, answer, place)
            journal.add(build_record(self.task, sample, answer, place, audio))
            bar.update()

        share = await run_pass(self.config.target, samples, load, repeat, on_answer)
        journal.end_pass(load.name, repeat, share)

    def _is_missing_audio(self, answer: Answer) -> bool:
        return self.task.requires_speech and answer.audio.first_at_s is None

    def _write_audio(self, sample: Sample, answer: Answer, place: PassPlace) -> str | None:
        """Write the audio that is to be transcribed, and return its path in the folder."""
        samples = bytes(answer.audio.samples)
        if self.task.language is None or not samples or answer.error:
            return None
        name = re.sub(r"[^\w.-]", "_", f"{place.load}_{place.repeat}_{sample.id}")
        path = self.folder / "audio" / f"{name}.wav"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(build_header(answer.audio.rate, len(samples)) + samples)
        return f"audio/{path.name}"

    def finish(self, transcripts: RunTranscripts | None = None, extra: Json | None = None) -> Json:
        """Summarise and write `run.json`, with `extra` as extra fields.

        Raises:
            ValueError: Samples are missing.
        """
        stored = read_journal(self._journal, self.config.as_json())
        keys = [(load.name, n, sample.id) for load, n in self._passes() for sample in self.samples]
        if missing := stored.missing(keys):
            raise ValueError(f"{len(missing)} samples of {len(keys)} are missing: continue the run")
        result = {
            "protocol": self.config.protocol,
            "config": self.config.as_json(),
            "environment": fingerprint(),
            **(extra or {}),
            "timelines": self._timelines(),
            "summary": [self._row(name, stored, transcripts) for name in self.config.loads],
            "records": [record_to_json(stored.records[key]) for key in keys],
        }
        path = self.folder / "run.json"
        part = path.with_suffix(".part")
        part.write_text(json.dumps(result, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        part.replace(path)
        return result

    def _timelines(self) -> list[Json]:
        path = self.folder / TIMELINES
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []

    def _row(self, load: str, stored: StoredRun, transcripts: RunTranscripts | None) -> Json:
        passes = []
        for repeat in range(self.config.repeats):
            records = [stored.records[load, repeat, sample.id] for sample in self.samples]
            passes.append(
                summarise_pass(records, stored.clients.get((load, repeat), []), transcripts)
            )
        return {"load": load, "over_repeats": summarise_repeats(passes), "repeats": passes}
