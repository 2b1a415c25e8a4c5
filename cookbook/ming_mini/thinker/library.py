"""Examples in memory by kind and length, and batches of about equally long ones."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from random import Random

import numpy as np
import torch

from cookbook.ming_mini.thinker.senses import rows_of
from cookbook.ming_mini.thinker.shards import Shard
from cookbook.ming_mini.thinker.store import ClipStore, PictureStore, Size
from cookbook.ming_mini.thinker.tasks import Kind
from sglang_omni.models.ming.media import MERGE, PATCH
from sglang_omni.models.ming.positions import VisualBlock, positions
from sglang_omni.models.ming.thinker.routing import AUDIO, IMAGE, TEXT

STEP = 16
"""Lengths of a batch differ by less than this."""
LONGEST = 448
PLENTY = 20_000
"""Texts of one length; beyond, a text is used once and forgotten."""
Key = tuple[Size, int]
NO_SIZE: Size = (0, 0)


@dataclass(frozen=True)
class Ready:
    """An example to train on: its tokens int16 [n], where the answer begins, task and medium."""

    ids: np.ndarray
    answer: int
    task: int
    media: int


@dataclass(frozen=True)
class Batch:
    """B examples of one kind, padded to L tokens, as arrays.

    `ids` [B, L], `positions` [3, B, L], `routes` [B, L] and `real` [B, L] are the thinker's.
    Rows number `before` [N] of the flattened batch must predict `answers` [N], which belong to
    examples `owners` [N] of `tasks` [B]. Features number `sources` [R] of the media's rows stand at
    `places` [R]. `media` [B] are pictures of `size`, or clips.
    """

    kind: Kind
    ids: np.ndarray
    positions: np.ndarray
    routes: np.ndarray
    real: np.ndarray
    before: np.ndarray
    answers: np.ndarray
    owners: np.ndarray
    tasks: np.ndarray
    media: np.ndarray
    sources: np.ndarray
    places: np.ndarray
    size: Size


@dataclass(frozen=True)
class Placeholders:
    """Tokens in whose place features go, and the stride of the audio projector."""

    image: int
    audio: int
    stride: int


class Library:
    """All examples and their media."""

    def __init__(self, tokens: Placeholders, device: torch.device, seed: int) -> None:
        self._tokens, self._device, self._rng = tokens, device, Random(seed)
        self.groups: dict[Kind, dict[Key, list[Ready]]] = {"text": {}, "picture": {}, "speech": {}}
        self.pictures: dict[Size, PictureStore] = {}
        self.clips = ClipStore(device)
        self.added: dict[Kind, int] = dict.fromkeys(self.groups, 0)

    def add(self, kind: Kind, shard: Shard) -> None:
        """Take in a shard."""
        media = self._add_media(kind, shard)
        for index in range(len(shard)):
            ids = shard.tokens(index)
            if len(ids) > LONGEST:
                continue
            size, number = media[shard.media[index]] if media else (NO_SIZE, -1)
            key = size, -(-len(ids) // STEP) * STEP
            one = Ready(ids, int(shard.answers[index]), int(shard.tasks[index]), number)
            self.groups[kind].setdefault(key, []).append(one)
            self.added[kind] += 1

    def _add_media(self, kind: Kind, shard: Shard) -> list[tuple[Size, int]]:
        if kind == "speech":
            first = self.clips.add(shard)
            return [(NO_SIZE, first + number) for number in range(len(shard.frames))]
        return self._add_pictures(shard)

    def _add_pictures(self, shard: Shard) -> list[tuple[Size, int]]:
        """Pictures of one size travel together; returns size and number of each in its order."""
        shapes = [(height, width) for height, width in shard.shapes.tolist()]
        pixels = _cut(shard.pixels, [height * width * 3 for height, width in shapes])
        marks = _cut(shard.marks, [h * w // (PATCH * MERGE) ** 2 for h, w in shapes])
        found: list[tuple[Size, int]] = [(NO_SIZE, -1)] * len(shapes)
        for size in set(shapes):
            chosen = [number for number, shape in enumerate(shapes) if shape == size]
            store = self.pictures.setdefault(size, PictureStore(self._device))
            drawn = [pixels[number].reshape(*size, 3) for number in chosen]
            first = store.add(drawn, [marks[number] for number in chosen])
            for place, number in enumerate(chosen):
                found[number] = size, first + place
        return found

    def draw(self, kind: Kind, tokens: int) -> Batch:
        """A batch of about `tokens` tokens; every length as likely as its share of all."""
        groups = self.groups[kind]
        keys = list(groups)
        weights = [key[1] * len(groups[key]) for key in keys]
        (key,) = self._rng.choices(keys, weights)
        count = min(len(groups[key]), max(1, tokens // key[1]))
        return self.batch(kind, self._take(groups[key], kind, count), key[0])

    def _take(self, pool: list[Ready], kind: Kind, count: int) -> list[Ready]:
        taken = []
        for _ in range(count):
            place = self._rng.randrange(len(pool))
            taken.append(pool[place])
            if kind == "text" and len(pool) > PLENTY:
                pool[place] = pool[-1]
                pool.pop()
        return taken

    def all(self, kind: Kind, tokens: int) -> Iterator[Batch]:
        """Every example once, in batches."""
        for (size, length), pool in self.groups[kind].items():
            count = max(1, tokens // length)
            for start in range(0, len(pool), count):
                yield self.batch(kind, pool[start : start + count], size)

    def batch(self, kind: Kind, examples: list[Ready], size: Size = NO_SIZE) -> Batch:
        """Examples side by side."""
        length = max(len(one.ids) for one in examples)
        ids = np.zeros((len(examples), length), np.int64)
        real = np.zeros(ids.shape, bool)
        table = np.empty((3, *ids.shape), np.int64)
        for row, one in enumerate(examples):
            ids[row, : len(one.ids)], real[row, : len(one.ids)] = one.ids, True
            table[:, row] = self._positions(one, length, size)
        routes = np.where(ids == self._tokens.image, IMAGE, TEXT)
        routes[ids == self._tokens.audio] = AUDIO
        before, answers, owners = _answers(examples, ids)
        media = np.array([one.media for one in examples])
        places = np.flatnonzero(routes)
        return Batch(
            kind, ids, table, routes, real, before, answers, owners,
            np.array([one.task for one in examples]), media, self._sources(kind, media, places),
            places, size,
        )  # fmt: skip

    def _positions(self, one: Ready, length: int, size: Size) -> np.ndarray:
        start = int((one.ids == self._tokens.image).argmax()) if size != NO_SIZE else 0
        return _table(length, start, size)

    def _sources(self, kind: Kind, media: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Which of the media's padded feature rows go to the places, in order."""
        if kind != "speech":
            return np.arange(len(places))
        frames = [self.clips.frames[number][1] for number in media]
        rows = [rows_of(count, self._tokens.stride) for count in frames]
        longest = max(rows)
        return np.concatenate([number * longest + np.arange(n) for number, n in enumerate(rows)])


def _cut(rows: np.ndarray, sizes: list[int]) -> list[np.ndarray]:
    """Consecutive pieces of these sizes."""
    return np.split(rows, np.cumsum(sizes)[:-1]) if sizes else []


@lru_cache(100_000)
def _table(length: int, start: int, size: Size) -> np.ndarray:
    """Positions [3, length] of a prompt with a picture of `size` at `start`."""
    rows, columns = (side // (PATCH * MERGE) for side in size)
    return positions(length, [VisualBlock(start, 1, rows, columns)] if rows else [])[0]


def _answers(examples: list[Ready], ids: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Flat rows before each token of the answers, the tokens, and whose they are."""
    length = ids.shape[1]
    spans = [np.arange(one.answer, len(one.ids)) for one in examples]
    owners = np.repeat(np.arange(len(examples)), [len(span) for span in spans])
    columns = np.concatenate(spans)
    return owners * length + columns - 1, ids[owners, columns], owners
