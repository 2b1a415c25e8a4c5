"""Training data on disk: shards of one kind that makers write and a trainer reads.

Makers do the costly work: drawing, speech, mel spectrograms, tokens.
"""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import get_args

import numpy as np

from cookbook.ming_mini.thinker.dialogs import Example
from cookbook.ming_mini.thinker.tasks import TASKS, Kind

POLL_SECONDS = 0.5
READERS = 4
SLOTS = 3
"""Things to recognise in one token of a picture, beside the colour of the first."""


@dataclass(frozen=True)
class Shard:
    """Examples of one kind and their media.

    Example i has the tokens ids[offsets[i] : offsets[i + 1]] (int16), whose answer starts at
    `answers`. `media` is the number of its picture or clip, `tasks` that of its task.

    Pictures: `shapes` int16 [pictures, 2] and `pixels` uint8, one picture after the other; `marks`
    int8 [tokens, SLOTS + 1] names the content of every token. Films: `shapes` [films, 3] also
    has the frames, first. Clips: `mel` float16 [frames, bins] of all clips, `frames` [clips] of
    each, and `letters` int8 with `spelled` [clips] of each.
    """

    ids: np.ndarray
    offsets: np.ndarray
    answers: np.ndarray
    media: np.ndarray
    tasks: np.ndarray
    shapes: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), np.int16))
    pixels: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint8))
    marks: np.ndarray = field(default_factory=lambda: np.zeros((0, SLOTS + 1), np.int8))
    mel: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), np.float16))
    frames: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    letters: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int8))
    spelled: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))

    def __len__(self) -> int:
        return len(self.answers)

    def tokens(self, index: int) -> np.ndarray:
        """Return the token ids of one example."""
        return self.ids[self.offsets[index] : self.offsets[index + 1]]


def of_examples(
    examples: Sequence[Example], tasks: Sequence[str] = TASKS, /, **media: np.ndarray
) -> Shard:
    """Build a shard of examples and the arrays of their media; `tasks` numbers the tasks."""
    lengths = [len(one.ids) for one in examples]
    return Shard(
        ids=np.array([token for one in examples for token in one.ids], np.int16),
        offsets=np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
        answers=np.array([one.answer for one in examples], np.int32),
        media=np.array([one.media for one in examples], np.int32),
        tasks=np.array([tasks.index(one.task) for one in examples], np.uint8),
        **media,
    )


def shard_path(folder: Path, kind: Kind, name: str) -> Path:
    """Return the file of a shard."""
    return folder / f"{kind}-{name}.npz"


def write_shard(folder: Path, kind: Kind, name: str, shard: Shard) -> Path:
    """Write a shard and then rename it, so that a visible shard is complete."""
    folder.mkdir(parents=True, exist_ok=True)
    path = shard_path(folder, kind, name)
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        # Pictures compress to a fiftieth; spectrograms hardly compress, and slowly.
        write = np.savez_compressed if kind in ("picture", "film") else np.savez
        write(file, **{one.name: getattr(shard, one.name) for one in fields(shard)})
    partial.rename(path)
    return path


def read_shard(path: Path) -> Shard:
    """Read one shard."""
    with np.load(path) as data:
        return Shard(**{one.name: data[one.name] for one in fields(Shard)})


class ShardFolder:
    """Read every shard of a folder once, as they appear."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._seen = folder, set[Path]()

    def new(self) -> Iterator[tuple[Kind, Shard]]:
        """Yield new shards with their kinds."""
        return map(_named, self.unseen())

    def unseen(self) -> list[Path]:
        """Return files that are new since the last call."""
        found = sorted(set(self._folder.glob("*.npz")) - self._seen)
        self._seen.update(found)
        return found


def _named(path: Path) -> tuple[Kind, Shard]:
    kind = path.name.split("-", 1)[0]
    return next(one for one in get_args(Kind) if one == kind), read_shard(path)


class ShardReader:
    """Read a folder ahead in threads, so that unpacking does not delay training."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._ready = ShardFolder(folder), Queue[tuple[Kind, Shard]](READERS)
        self.reading = True
        Thread(target=self._read, daemon=True).start()

    def ready(self, most: int) -> Iterator[tuple[Kind, Shard]]:
        """Return at most `most` shards that have been read."""
        for _ in range(most):
            try:
                yield self._ready.get_nowait()
            except Empty:
                return

    def _read(self) -> None:
        with ThreadPoolExecutor(READERS) as pool:
            while True:
                paths = self._folder.unseen()
                self.reading = bool(paths)
                for start in range(0, len(paths), READERS):
                    for found in pool.map(_named, paths[start : start + READERS]):
                        self._ready.put(found)
                time.sleep(POLL_SECONDS)
