"""Examples of about one length as rows of arrays, so that drawing a batch is indexing."""

from dataclasses import dataclass, fields

import numpy as np

from cookbook.ming_mini.thinker.shards import Shard


@dataclass(frozen=True)
class Examples:
    """n examples of one kind.

    `ids` int16 [n, length] is zero after the `ends` [n]; the answers start at `answers` [n].
    `tasks` [n] and `media` [n] are numbers.
    """

    ids: np.ndarray
    ends: np.ndarray
    answers: np.ndarray
    tasks: np.ndarray
    media: np.ndarray

    def __len__(self) -> int:
        return len(self.ids)


def padded_examples(shard: Shard, rows: np.ndarray, media: np.ndarray, length: int) -> Examples:
    """Return the examples of a shard in these `rows`, padded to `length`."""
    starts = shard.offsets[rows]
    ends = shard.offsets[rows + 1] - starts
    columns = np.arange(length)
    index = np.minimum(starts[:, None] + columns, len(shard.ids) - 1)
    ids = np.where(columns < ends[:, None], shard.ids[index], np.int16(0))
    answers, tasks = (one[rows].astype(np.int64) for one in (shard.answers, shard.tasks))
    return Examples(ids, ends, answers, tasks, media)


class Pool:
    """Examples padded to one length; the memory doubles when it is full."""

    def __init__(self, length: int) -> None:
        numbers = [np.zeros(0, np.int64) for _ in range(4)]
        self._rows, self._count = Examples(np.zeros((0, length), np.int16), *numbers), 0

    def __len__(self) -> int:
        return self._count

    def add(self, new: Examples) -> None:
        """Append examples."""
        end = self._count + len(new)
        if end > len(self._rows):
            self._grow(max(end, 2 * len(self._rows)))
        for one in fields(Examples):
            getattr(self._rows, one.name)[self._count : end] = getattr(new, one.name)
        self._count = end

    def _grow(self, room: int) -> None:
        old = [getattr(self._rows, one.name) for one in fields(Examples)]
        larger = [np.empty((room, *array.shape[1:]), array.dtype) for array in old]
        for array, wider in zip(old, larger, strict=True):
            wider[: self._count] = array[: self._count]
        self._rows = Examples(*larger)

    def examples(self, places: np.ndarray) -> Examples:
        """Return the examples at `places`, in that order."""
        return Examples(*(getattr(self._rows, one.name)[places] for one in fields(Examples)))

    def remove(self, places: np.ndarray) -> None:
        """Remove the examples at `places`, all different; the last ones take their places."""
        left = self._count - len(places)
        holes = places[places < left]
        movers = np.setdiff1d(np.arange(left, self._count), places)
        for one in fields(Examples):
            array = getattr(self._rows, one.name)
            array[holes] = array[movers]
        self._count = left
