"""Examples in memory by kind and length, and batches of about equally long ones."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import get_args

import numpy as np
import torch

from cookbook.ming_mini.thinker.curriculum import MINI, Curriculum
from cookbook.ming_mini.thinker.encoders import num_feature_rows
from cookbook.ming_mini.thinker.example_pools import Examples, Pool, padded_examples
from cookbook.ming_mini.thinker.media_store import ClipStore, FilmStore, PictureStore, Size, padded
from cookbook.ming_mini.thinker.shards import Shard
from cookbook.ming_mini.thinker.tasks import TASKS, Kind
from sglang_omni.models.ming.media_rules import MERGE, PATCH
from sglang_omni.models.ming.prompt.positions import VisualBlock, compute_positions
from sglang_omni.models.ming.thinker.routing import AUDIO, IMAGE, TEXT

STEP = 16
"""Lengths of a batch differ by less than this."""
MAX_TEXTS = 20_000
"""The most texts of one length to keep; above it, a text is used once and removed."""
Key = tuple[Size, int]
NO_SIZE: Size = (0, 0)


@dataclass(frozen=True)
class Batch:
    """B examples of one kind, padded to L tokens, as arrays.

    `ids` [B, L], `positions` [3, B, L], `routes` [B, L] and `real` [B, L] are the thinker's. Rows
    `before` [N] of the flattened batch must predict `answers` [N], which belong to examples
    `owners` [N] of `tasks` [B] and count in the loss with `weights` [N]. Rows `sources` [R] of the
    media's features go to `places` [R]. `media` [B] are pictures or films of `size`, or clips.
    """

    kind: Kind
    ids: np.ndarray
    positions: np.ndarray
    routes: np.ndarray
    real: np.ndarray
    before: np.ndarray
    answers: np.ndarray
    owners: np.ndarray
    weights: np.ndarray
    tasks: np.ndarray
    media: np.ndarray
    sources: np.ndarray
    places: np.ndarray
    size: Size


@dataclass(frozen=True)
class Placeholders:
    """The tokens that features replace, and the stride of the audio projector.

    `frame` stands for a pair of frames of a film.
    """

    image: int
    audio: int
    stride: int
    frame: int = -1


class Library:
    """All examples and their media."""

    def __init__(
        self,
        tokens: Placeholders,
        device: torch.device,
        seed: int,
        curriculum: Curriculum = MINI,
    ) -> None:
        self._tokens, self._device, self._max_tokens = tokens, device, curriculum.max_tokens
        self._boosts = np.array([curriculum.boosts.get(task, 1.0) for task in curriculum.tasks])
        self._random = np.random.default_rng(seed)
        self.groups: dict[Kind, dict[Key, Pool]] = {kind: {} for kind in get_args(Kind)}
        self.pictures: dict[Size, PictureStore] = {}
        self.films: dict[Size, FilmStore] = {}
        self.clips = ClipStore(device)
        self.added: dict[Kind, int] = dict.fromkeys(self.groups, 0)

    def add(self, kind: Kind, shard: Shard) -> None:
        """Add a shard."""
        sizes, numbers = self._add_media(kind, shard)
        lengths = np.diff(shard.offsets)
        of_length = -(-lengths // STEP) * STEP
        which = shard.media if kind != "text" else np.zeros(len(shard), np.int64)
        kept = np.flatnonzero(lengths <= self._max_tokens)
        keys = np.column_stack((sizes[which], of_length))[kept]
        for *size, length in np.unique(keys, axis=0).tolist():
            rows = kept[(keys == (*size, length)).all(1)]
            pool = self.groups[kind].setdefault((tuple(size), length), Pool(length))
            pool.add(padded_examples(shard, rows, numbers[which[rows]], length))
        self.added[kind] += len(kept)

    def _add_media(self, kind: Kind, shard: Shard) -> tuple[np.ndarray, np.ndarray]:
        """Add a shard's media.

        Returns their sizes [media, 2], of films [media, 3], and their numbers [media] in the store.
        """
        if kind == "text":
            return np.zeros((1, 2), np.int64), np.full(1, -1)
        if kind == "speech":
            numbers = self.clips.add(shard) + np.arange(len(shard.frames))
            return np.zeros((len(numbers), 2), np.int64), numbers
        add = self._add_pictures if kind == "picture" else self._add_films
        return shard.shapes.astype(np.int64), add(shard)

    def _add_pictures(self, shard: Shard) -> np.ndarray:
        """Add pictures, grouped by size. Returns the number of each, in the shard's order."""
        shapes = [(height, width) for height, width in shard.shapes.tolist()]
        pixels = _split_rows(shard.pixels, [height * width * 3 for height, width in shapes])
        marks = _split_rows(shard.marks, [h * w // (PATCH * MERGE) ** 2 for h, w in shapes])
        numbers = np.zeros(len(shapes), np.int64)
        for size in set(shapes):
            chosen = [number for number, shape in enumerate(shapes) if shape == size]
            store = self.pictures.setdefault(size, PictureStore(self._device))
            drawn = [pixels[number].reshape(*size, 3) for number in chosen]
            first = store.add(drawn, [marks[number] for number in chosen])
            numbers[chosen] = first + np.arange(len(chosen))
        return numbers

    def _add_films(self, shard: Shard) -> np.ndarray:
        """Add films, grouped by size. Returns the number of each, in the shard's order."""
        shapes = [tuple(shape) for shape in shard.shapes.tolist()]
        pixels = _split_rows(shard.pixels, [math.prod(shape) * 3 for shape in shapes])
        numbers = np.zeros(len(shapes), np.int64)
        for size in set(shapes):
            chosen = [number for number, shape in enumerate(shapes) if shape == size]
            store = self.films.setdefault(size, FilmStore(self._device))
            first = store.add([pixels[number].reshape(*size, 3) for number in chosen])
            numbers[chosen] = first + np.arange(len(chosen))
        return numbers

    def draw(self, kind: Kind, tokens: int) -> Batch:
        """Draw a batch of about `tokens` tokens.

        Every length is as likely as its share of all tokens.
        """
        groups = self.groups[kind]
        keys = list(groups)
        weights = np.array([key[1] * len(groups[key]) for key in keys], float)
        key = keys[int(self._random.choice(len(keys), p=weights / weights.sum()))]
        pool = groups[key]
        count = min(len(pool), max(1, tokens // key[1]))
        return self.batch(kind, self._take(pool, kind, count), key[0])

    def _take(self, pool: Pool, kind: Kind, count: int) -> Examples:
        if kind != "text" or len(pool) <= MAX_TEXTS:
            return pool.examples(self._random.integers(len(pool), size=count))
        places = self._random.choice(len(pool), count, replace=False)
        taken = pool.examples(places)
        pool.remove(places)
        return taken

    def all(self, kind: Kind, tokens: int) -> Iterator[Batch]:
        """Yield every example once, in batches."""
        for (size, length), pool in self.groups[kind].items():
            count = max(1, tokens // length)
            for start in range(0, len(pool), count):
                rows = np.arange(start, min(start + count, len(pool)))
                yield self.batch(kind, pool.examples(rows), size)

    def batch(self, kind: Kind, examples: Examples, size: Size = NO_SIZE) -> Batch:
        """Join examples to a batch."""
        ids = examples.ids.astype(np.int64)
        columns = np.arange(ids.shape[1])
        real = columns < examples.ends[:, None]
        answered = real & (columns >= examples.answers[:, None])
        owners, _ = answered.nonzero()
        routes = np.where(self._is_visual(ids), IMAGE, TEXT)
        routes[ids == self._tokens.audio] = AUDIO
        places = np.flatnonzero(routes)
        return Batch(
            kind, ids, self._positions(ids, size), routes, real, np.flatnonzero(answered) - 1,
            ids[answered], owners, answer_weights(owners, examples.tasks, self._boosts),
            examples.tasks, examples.media,
            self._sources(kind, examples.media, places), places, size,
        )  # fmt: skip

    def _positions(self, ids: np.ndarray, size: Size) -> np.ndarray:
        if size == NO_SIZE:
            return np.broadcast_to(np.arange(ids.shape[1]), (3, *ids.shape))
        visual = self._is_visual(ids)
        # Between two pairs of frames there is always text, the time of the second.
        begins = visual & ~np.pad(visual[:, :-1], ((0, 0), (1, 0)))
        starts = [tuple(np.flatnonzero(row).tolist()) for row in begins]
        return np.stack([_table(ids.shape[1], one, size[-2:]) for one in starts], axis=1)

    def _is_visual(self, ids: np.ndarray) -> np.ndarray:
        return (ids == self._tokens.image) | (ids == self._tokens.frame)

    def _sources(self, kind: Kind, media: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Return which of the media's padded feature rows go to the places, in order."""
        if kind != "speech":
            return np.arange(len(places))
        frames = self.clips.lengths(media)
        rows = num_feature_rows(frames, self._tokens.stride)
        longest = num_feature_rows(padded(frames), self._tokens.stride)
        return np.flatnonzero(np.arange(longest) < rows[:, None])


def answer_weights(
    owners: np.ndarray, tasks: np.ndarray, boosts: np.ndarray | None = None
) -> np.ndarray:
    """Return weights [N] of answer tokens, whose sum is 1.

    The tokens belong to examples `owners` [N] of `tasks`. An answer counts as the square root of
    its length. If it counted by length, a letter to choose would vanish beside sentences to repeat;
    if all counted alike, a sentence's words would. Some tasks count more: answers of one token,
    which are a hundredth of all, and tasks that are learned last. `boosts` says how much for every
    task; without, those of Ming-mini.
    """
    lengths = np.bincount(owners)[owners]
    weights = lengths**-0.5 * (_BOOSTS if boosts is None else boosts)[tasks][owners]
    return (weights / weights.sum()).astype(np.float32)


_BOOSTS = np.array([MINI.boosts.get(task, 1.0) for task in TASKS])


def _split_rows(rows: np.ndarray, sizes: list[int]) -> list[np.ndarray]:
    """Split into consecutive pieces of these sizes."""
    return np.split(rows, np.cumsum(sizes)[:-1]) if sizes else []


@lru_cache(100_000)
def _table(length: int, starts: tuple[int, ...], size: Size) -> np.ndarray:
    """Return positions [3, length] of a prompt with pictures of `size` at `starts`."""
    rows, columns = (side // (PATCH * MERGE) for side in size)
    return compute_positions(length, [VisualBlock(one, 1, rows, columns) for one in starts])[0]
