"""One run: every sample of a task under every load, so often; one folder, one JSON file at its end.

The folder holds `journal.jsonl` while the run lasts and after it, `run.json` when all is there, and
`audio/` where there is something to listen to.
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
from benchmarks.evaluation.protocol.journal import Journal, Stored, read
from benchmarks.evaluation.protocol.passes import LoadPlan, run_pass, warm_up
from benchmarks.evaluation.protocol.record import Place, as_json, record
from benchmarks.evaluation.protocol.summary import Heard, over_repeats, summarise_pass
from benchmarks.evaluation.tasks import TASKS
from benchmarks.evaluation.tasks.task import Sample
from measurement.environment import fingerprint
from sglang_omni.media.wav import build_header

Json = dict[str, Any]
TIMELINES = "timelines.json"
# Where a server answers, and how it is let in, does not change what is measured.
NOT_PROTOCOL = ("url", "key_variable", "timeout_s")


@dataclass(frozen=True)
class RunConfig:
    """What is run. `source` is where the rows come from; `samples` None takes all; `system` says
    what serves, for tables: cards and precision."""

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
        """As it stands in the file of the run."""
        target = {k: v for k, v in asdict(self.target).items() if k not in NOT_PROTOCOL}
        own = {k: v for k, v in asdict(self).items() if k != "target"}
        return own | {"loads": list(self.loads), "target": target}

    @property
    def protocol(self) -> str:
        """What must be equal of two runs whose speeds may stand in one column."""
        source = "" if self.source.startswith("hub") else f", {_kind(self.source)}"
        count = "all" if self.samples is None else f"first {self.samples}"
        how = "streamed" if self.target.streaming else "whole answers"
        name = f"{self.preset}: " if self.preset else ""
        return f"{name}{self.task}, {count}{source}, {how}"


def _kind(source: str) -> str:
    return "bundled" if source == "fixture" else "a folder"


class Run:
    """A run in its folder, begun or gone on with."""

    def __init__(self, config: RunConfig, folder: Path) -> None:
        """Raises `DatasetError`, and `CannotAsk` where the server cannot be asked this."""
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
        """Ask what has not been asked yet. Raises `OtherRun` where the folder is another's."""
        with Journal(self._journal, self.config.as_json()) as journal:
            total = len(self.samples) * len(self.config.loads) * self.config.repeats
            done = len(journal.stored.records)
            with tqdm(total=total, initial=done, desc=self.config.task, unit="req") as bar:
                asyncio.run(self._ask(journal, bar))
        self._note_timelines()

    def _note_timelines(self) -> None:
        """Keep where a request of each load spent its time, while the server still knows."""
        path = self.folder / TIMELINES
        if self.config.target.dialect != "ours" or path.is_file():
            return
        stored = read(self._journal, self.config.as_json())
        last = {one.load: one.request_id for one in stored.records.values() if one.request_id}
        found = [fetch_timeline(self.config.target, each) for each in last.values()]
        path.write_text(json.dumps([one for one in found if one]) + "\n", encoding="utf-8")

    async def _ask(self, journal: Journal, bar: tqdm) -> None:
        warmed = False
        for load, repeat in self._passes():
            keys = {(load.name, repeat, one.id): one for one in self.samples}
            wanted = [keys[key] for key in journal.stored.missing(keys)]
            if not wanted:
                continue
            if not warmed:
                clients = int(max(1, min(load.amount, self.config.warm_up)))
                await warm_up(self.config.target, self.samples, self.config.warm_up, clients)
                warmed = True
            await self._pass(journal, bar, load, repeat, wanted)

    async def _pass(
        self, journal: Journal, bar: tqdm, load: LoadPlan, repeat: int, wanted: Sequence[Sample]
    ) -> None:
        place = Place(load.name, repeat, journal.sitting, time.monotonic())

        def took(sample: Sample, answer: Answer) -> None:
            if answer.error is None and self._mute(answer):
                answer.error = "an answer without audio"
            audio = self._keep(sample, answer, place)
            journal.add(record(self.task, sample, answer, place, audio))
            bar.update()

        share = await run_pass(self.config.target, wanted, load, repeat, took)
        journal.end_pass(load.name, repeat, share)

    def _mute(self, answer: Answer) -> bool:
        return self.task.speaks and answer.audio.first_at_s is None

    def _keep(self, sample: Sample, answer: Answer, place: Place) -> str | None:
        """Write what is to be listened to; its name in the folder."""
        samples = bytes(answer.audio.samples)
        if self.task.language is None or not samples or answer.error:
            return None
        name = re.sub(r"[^\w.-]", "_", f"{place.load}_{place.repeat}_{sample.id}")
        path = self.folder / "audio" / f"{name}.wav"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(build_header(answer.audio.rate, len(samples)) + samples)
        return f"audio/{path.name}"

    def finish(self, heard: Heard | None = None, about: Json | None = None) -> Json:
        """Summarise and write `run.json`; `about` tells of what came after the answers. Raises
        `ValueError` while samples are missing."""
        stored = read(self._journal, self.config.as_json())
        keys = [(load.name, n, one.id) for load, n in self._passes() for one in self.samples]
        if missing := stored.missing(keys):
            raise ValueError(
                f"{len(missing)} samples of {len(keys)} are missing: go on with the run"
            )
        result = {
            "protocol": self.config.protocol,
            "config": self.config.as_json(),
            "environment": fingerprint(),
            **(about or {}),
            "timelines": self._timelines(),
            "summary": [self._row(name, stored, heard) for name in self.config.loads],
            "records": [as_json(stored.records[key]) for key in keys],
        }
        path = self.folder / "run.json"
        part = path.with_suffix(".part")
        part.write_text(json.dumps(result, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        part.replace(path)
        return result

    def _timelines(self) -> list[Json]:
        path = self.folder / TIMELINES
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []

    def _row(self, load: str, stored: Stored, heard: Heard | None) -> Json:
        passes = []
        for repeat in range(self.config.repeats):
            mine = [stored.records[load, repeat, sample.id] for sample in self.samples]
            passes.append(summarise_pass(mine, stored.clients.get((load, repeat), []), heard))
        return {"load": load, "over_repeats": over_repeats(passes), "repeats": passes}
