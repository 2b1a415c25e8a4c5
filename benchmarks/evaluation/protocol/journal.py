"""What a run has done so far, on disk after every sample: a run that was cut off goes on."""

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.client.load import ClientShare
from benchmarks.evaluation.protocol.record import Key, SampleRecord, as_json, from_json

Json = dict[str, Any]


class OtherRun(RuntimeError):
    """The folder holds a run with another configuration."""


@dataclass
class Stored:
    """What a journal holds: records, how busy the client was in each pass, and how many sittings
    wrote it. `bytes_read` is the length of its whole lines."""

    records: dict[Key, SampleRecord] = field(default_factory=dict)
    clients: dict[tuple[str, int], list[ClientShare]] = field(default_factory=dict)
    sittings: int = 0
    bytes_read: int = 0

    def missing(self, keys: Iterable[Key]) -> list[Key]:
        """Those of which there is no record yet."""
        return [key for key in keys if key not in self.records]


def read(path: Path, config: Json) -> Stored:
    """What is in a journal, nothing where there is none.

    A line that was cut off in the middle is no record: its sample is asked again. Raises `OtherRun`
    where the journal belongs to another configuration.
    """
    stored = Stored()
    if not path.is_file():
        return stored
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    stored.bytes_read = len(whole) + 1 if whole else 0
    for line in (json.loads(line) for line in whole.split(b"\n") if line):
        if "config" in line:
            _compare(path, line["config"], json.loads(json.dumps(config)))
        elif "sample" in line:
            one = from_json(line)
            stored.records[one.key] = one
        elif "client" in line:
            share = ClientShare(**line["client"])
            stored.clients.setdefault(tuple(line["pass"]), []).append(share)
        else:
            stored.sittings = line["begins"] + 1
    return stored


def _compare(path: Path, begun: Json, asked: Json) -> None:
    if begun != asked:
        changed = sorted(name for name in asked if begun.get(name) != asked[name])
        raise OtherRun(f"{path.parent} holds a run with other {', '.join(changed)}")


class Journal:
    """Lines of JSON: the configuration, a line when a sitting begins, one for every sample, one
    for every pass. One process may write it at a time."""

    def __init__(self, path: Path, config: Json) -> None:
        """Begin it or go on with it. Raises `OtherRun`."""
        self.stored = read(path, config)
        self.sitting = self.stored.sittings
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab")
        self._file.truncate(self.stored.bytes_read)
        if self.stored.bytes_read == 0:
            self._write({"config": config})
        self._write({"begins": self.sitting})

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, one: SampleRecord) -> None:
        """Keep a record: what kills this process leaves it."""
        self._write(as_json(one))

    def end_pass(self, load: str, repeat: int, share: ClientShare) -> None:
        """Keep how busy the client was in a pass, or in what this sitting made of it; what kills
        the machine leaves all up to here."""
        self._write({"pass": [load, repeat], "client": asdict(share)})
        os.fsync(self._file.fileno())

    def _write(self, line: Json) -> None:
        # To wait for the disk here would delay what other clients are hearing at this moment.
        self._file.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        self._file.flush()
