"""Examples of one task and one size as arrays, in files that any number of makers write."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from typing import Literal

import numpy as np

from cookbook.ming_mini.thinker.items import Split
from cookbook.ming_mini_2.image.captions import request
from cookbook.ming_mini_2.image.drawing import PictureArrays, encode_pictures
from cookbook.ming_mini_2.image.edits import draw_edit
from cookbook.ming_mini_2.image.labels import label_content
from cookbook.ming_mini_2.image.prompts import PromptBuilder
from cookbook.ming_mini_2.image.scenes import (
    TIDY,
    ShapePicture,
    Size,
    draw_content,
    draw_size,
    place,
)
from cookbook.ming_mini_2.thinker.excluded import Excluded

Task = Literal["draw", "edit"]
TASKS: tuple[Task, ...] = ("draw", "edit")
Kind = tuple[Task, Size]
SHOWN_PROMPTS = ("a red circle above two blue squares", "make the circle green")
"""What users are shown first; no training has them."""


@dataclass(frozen=True)
class DrawnExample:
    """A prompt with its picture; an edit has the picture before it, and its kind, as well."""

    text: str
    target: ShapePicture
    source: ShapePicture | None = None
    edit: str = ""

    @property
    def kind(self) -> Kind:
        """Return the task and the size, which the examples of a batch share."""
        return ("edit" if self.source else "draw"), self.target.size


@dataclass(frozen=True)
class ExampleArrays:
    """N examples of one kind.

    `ids` int32 [N, L] are prompts with their query block, padded with zeros; `labels` int8
    [N, labels] say what the pictures show. Without a task of editing there are no `sources`.
    """

    ids: np.ndarray
    labels: np.ndarray
    targets: PictureArrays
    sources: PictureArrays | None

    def __len__(self) -> int:
        return len(self.ids)


def stream_examples(
    task: Task, seed: int | str, split: Split, excluded: Excluded
) -> Iterator[DrawnExample]:
    """Yield endless examples of a split, without prompts that users are shown."""
    rng = Random(f"{task} {seed}")
    shown = excluded.texts | set(SHOWN_PROMPTS)
    while True:
        example = _draw_example(task, rng, split)
        if example and example.text not in shown:
            yield example


def _draw_example(task: Task, rng: Random, split: Split) -> DrawnExample | None:
    if task == "edit":
        edit = draw_edit(rng)
        if edit.split != split:
            return None
        return DrawnExample(edit.instruction, edit.target, edit.source, edit.kind)
    content = draw_content(rng)
    if content.split != split:
        return None
    return DrawnExample(request(content, rng), place(content, draw_size(rng), rng, TIDY))


def encode_examples(
    examples: Sequence[DrawnExample], builder: PromptBuilder
) -> dict[Kind, ExampleArrays]:
    """Return examples as arrays, those of each kind together."""
    kinds: dict[Kind, list[DrawnExample]] = {}
    for example in examples:
        kinds.setdefault(example.kind, []).append(example)
    return {kind: _encode_kind(chosen, builder) for kind, chosen in kinds.items()}


def _encode_kind(examples: list[DrawnExample], builder: PromptBuilder) -> ExampleArrays:
    prompts = [
        builder.build(example.text, example.source.size if example.source else None)
        for example in examples
    ]
    sources = [example.source for example in examples if example.source]
    return ExampleArrays(
        pad_rows(prompts),
        np.array([label_content(example.target.content) for example in examples], np.int8),
        encode_pictures([example.target for example in examples]),
        encode_pictures(sources) if sources else None,
    )


def pad_rows(rows: Sequence[Sequence[int]], least: int = 0) -> np.ndarray:
    """Return rows as int32 [N, L], padded with zeros; L is at least `least`."""
    padded = np.zeros((len(rows), max(least, *map(len, rows))), np.int32)
    for index, row in enumerate(rows):
        padded[index, : len(row)] = row
    return padded


def write_examples(
    folder: Path, name: str, task: Task, examples: Iterator[DrawnExample], count: int,
    builder: PromptBuilder,
) -> None:  # fmt: skip
    """Write the next `count` examples, a file for each size. A visible file is complete."""
    folder.mkdir(parents=True, exist_ok=True)
    kinds = encode_examples(list(islice(examples, count)), builder)
    for (_, (height, width)), arrays in kinds.items():
        path = folder / f"{task}-{height}x{width}-{name}.npz"
        partial = path.with_suffix(".partial")
        with partial.open("wb") as file:
            np.savez_compressed(file, **_named(arrays))  # type: ignore[arg-type]
        partial.rename(path)


def read_examples(folder: Path) -> dict[Kind, ExampleArrays]:
    """Return the examples of all files of a folder.

    Raises:
        FileNotFoundError: There is no file.
    """
    found: dict[Kind, list[ExampleArrays]] = {}
    for path in sorted(folder.glob("*.npz")):
        task, size, _ = path.stem.split("-", 2)
        height, width = map(int, size.split("x"))
        key: Kind = ("edit" if task == "edit" else "draw", (height, width))
        with np.load(path) as file:
            found.setdefault(key, []).append(_from_named(dict(file)))
    if not found:
        raise FileNotFoundError(f"{folder}/*.npz")
    return {kind: join_examples(parts) for kind, parts in found.items()}


def join_examples(parts: Sequence[ExampleArrays]) -> ExampleArrays:
    """Join arrays of one kind; their prompts become equally long."""
    longest = max(part.ids.shape[1] for part in parts)
    sources = [part.sources for part in parts if part.sources is not None]
    return ExampleArrays(
        np.concatenate([pad_rows(part.ids.tolist(), longest) for part in parts]),
        np.concatenate([part.labels for part in parts]),
        join_pictures([part.targets for part in parts]),
        join_pictures(sources) if sources else None,
    )


def join_pictures(parts: Iterable[PictureArrays]) -> PictureArrays:
    """Join pictures of one size."""
    kept = list(parts)
    return PictureArrays(
        np.concatenate([part.placed for part in kept]),
        np.concatenate([part.colours for part in kept]),
    )


def _named(arrays: ExampleArrays) -> dict[str, np.ndarray]:
    named = {"ids": arrays.ids, "labels": arrays.labels}
    pictures = {"target": arrays.targets, "source": arrays.sources}
    for name, part in pictures.items():
        if part is not None:
            named |= {f"{name}_placed": part.placed, f"{name}_colours": part.colours}
    return named


def _from_named(named: dict[str, np.ndarray]) -> ExampleArrays:
    target, source = (
        PictureArrays(named[f"{name}_placed"], named[f"{name}_colours"])
        if f"{name}_placed" in named
        else None
        for name in ("target", "source")
    )
    assert target is not None
    return ExampleArrays(named["ids"], named["labels"], target, source)
