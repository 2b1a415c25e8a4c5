"""The journal of a run, on disk after every sample, so that an interrupted run can continue."""

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.client.load import ClientShare
from benchmarks.evaluation.protocol.record import (
    Key,
    SampleRecord,
    record_from_json,
    record_to_json,
)

Json = dict[str, Any]


class RunMismatch(RuntimeError):
    """The folder has a run with another configuration."""


@dataclass
class StoredRun:
    """The content of a journal.

    It has the records, the client's load in each pass, and the number of sittings. A sitting is one
    process's work on the run. `bytes_read` is the length of the complete lines.
    """

    records: dict[Key, SampleRecord] = field(default_factory=dict)
    clients: dict[tuple[str, int], list[ClientShare]] = field(default_factory=dict)
    sittings: int = 0
    bytes_read: int = 0

    def missing(self, keys: Iterable[Key]) -> list[Key]:
        """Return the keys that have no record yet."""
        return [key for key in keys if key not in self.records]


def read_journal(path: Path, config: Json) -> StoredRun:
    """Read a journal; an empty run if there is none.

    An incomplete line is not a record: its sample is asked again. Raises `RunMismatch` if the
    journal has another configuration.
    """
    stored = StoredRun()
    if not path.is_file():
        return stored
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    stored.bytes_read = len(whole) + 1 if whole else 0
    for line in (json.loads(line) for line in whole.split(b"\n") if line):
        if "config" in line:
            _compare(path, line["config"], json.loads(json.dumps(config)))
        elif "sample" in line:
            one = record_from_json(line)
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
        raise RunMismatch(f"{path.parent} holds a run with other {', '.join(changed)}")


class Journal:
    """A file of JSON lines that one process writes at a time.

    It has the configuration, a line at the start of each sitting, one for every sample, and one for
    every pass.
    """

    def __init__(self, path: Path, config: Json) -> None:
        """Start or continue a journal. Raises `RunMismatch`."""
        self.stored = read_journal(path, config)
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
        """Write a record, which survives the end of this process."""
        self._write(record_to_json(one))

    def end_pass(self, load: str, repeat: int, share: ClientShare) -> None:
        """Write the client's load in a pass and sync the file to disk.

        A pass in several sittings has one such entry for each.
        """
        self._write({"pass": [load, repeat], "client": asdict(share)})
        os.fsync(self._file.fileno())

    def _write(self, line: Json) -> None:
        # No sync here: waiting for the disk would delay other clients.
        self._file.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        self._file.flush()
