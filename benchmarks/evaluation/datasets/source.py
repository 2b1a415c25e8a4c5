"""Rows of a data set: from the Hugging Face hub, from a local folder, or bundled.

A row is a dict with the data set's own columns. Media are `{"bytes": ..., "path": ...}`, as in the
hub's parquet files.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Row = dict[str, Any]
FIXTURE, HUB = "fixture", "hub"


class DatasetError(RuntimeError):
    """A data set is missing or malformed."""


@dataclass(frozen=True)
class Dataset:
    """A data set, as its publishers name it.

    `columns` are those that tasks need; `media` are those of them that hold files. `bundled` makes
    rows of the same form without network. With `listed`, a folder may have a `meta.lst` of
    seed-tts-eval instead of parquet or JSON lines. `beside` is a column of videos that the data set
    keeps as separate files, `data/<videoID>.mp4` in a folder. With `take` only the first `take`
    rows are used.
    """

    name: str
    config: str | None
    split: str
    columns: tuple[str, ...]
    bundled: Callable[[], list[Row]]
    media: tuple[str, ...] = ()
    listed: bool = False
    beside: str | None = None
    take: int | None = None


def load_rows(dataset: Dataset, source: str) -> list[Row]:
    """Return all rows, in their stored order.

    `source` is "fixture", "hub", "hub:OWNER/NAME" for a copy with the same columns, or a folder.

    Raises:
        DatasetError: Something is missing; the message says what.
    """
    if source == FIXTURE:
        rows = dataset.bundled()
    elif source == HUB or source.startswith(f"{HUB}:"):
        rows = _from_hub(dataset, source.partition(":")[2] or dataset.name)
    else:
        rows = _from_folder(dataset, Path(source))
    if not rows:
        raise DatasetError(f"{dataset.name}: no rows in {source}")
    if missing := set(dataset.columns) - set(rows[0]):
        raise DatasetError(f"{dataset.name}: {source} lacks the columns {sorted(missing)}")
    if dataset.beside and dataset.beside not in rows[0]:
        raise DatasetError(f"{dataset.name}: the videos are not in {source}; name their folder")
    return rows[: dataset.take]


def _from_hub(dataset: Dataset, name: str) -> list[Row]:
    try:
        import datasets
    except ImportError:
        raise DatasetError(
            "`pip install datasets` to load from the hub, or name a folder"
        ) from None
    try:
        rows = datasets.load_dataset(name, dataset.config, split=dataset.split)
    except Exception as error:  # The library raises its own errors and many others.
        raise DatasetError(f"{name}: {type(error).__name__}: {error}") from error
    for column in set(dataset.media) & set(rows.column_names):
        feature = rows.features[column]
        if hasattr(feature, "decode"):
            # Do not decode: images and clips go to the server as the files they are stored in.
            rows = rows.cast_column(column, type(feature)(decode=False))
    return list(rows)


def _from_folder(dataset: Dataset, folder: Path) -> list[Row]:
    if not folder.is_dir():
        raise DatasetError(f"{dataset.name}: {folder} is not a folder")
    if dataset.listed and (folder / "meta.lst").is_file():
        return _read_meta_list(folder)
    if dataset.config and (folder / dataset.config).is_dir():
        folder = folder / dataset.config
    files = _files(folder, dataset.split)
    if not files:
        raise DatasetError(f"{dataset.name}: no parquet or jsonl files in {folder}")
    rows = [row for path in files for row in _rows(path)]
    if dataset.beside:
        rows = [{dataset.beside: f"data/{row['videoID']}.mp4"} | row for row in rows]
    return [_read_media_columns(row, dataset.media, folder) for row in rows]


def _files(folder: Path, split: str) -> list[Path]:
    """Return the files named after the split, or all files where there are none, sorted."""
    found = sorted(path for form in ("parquet", "jsonl") for path in folder.rglob(f"*.{form}"))
    return [path for path in found if path.name.startswith(split)] or found


def _rows(path: Path) -> list[Row]:
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
    try:
        import pyarrow.parquet
    except ImportError:
        raise DatasetError("`pip install pyarrow` to read parquet files") from None
    rows: list[Row] = pyarrow.parquet.read_table(path).to_pylist()
    return rows


def _read_media_columns(row: Row, media: Sequence[str], folder: Path) -> Row:
    """Return the row with files in place of their paths."""
    paths = {name: row[name] for name in media if isinstance(row.get(name), str)}
    return row | {name: read_media(folder / path) for name, path in paths.items()}


def read_media(path: Path) -> Row:
    """Read a file into the form of a media column. Raises `DatasetError` if there is none."""
    try:
        return {"bytes": path.read_bytes(), "path": path.name}
    except OSError as error:
        raise DatasetError(f"{path}: {error.strerror}") from None


def _read_meta_list(folder: Path) -> list[Row]:
    """Read the list of seed-tts-eval.

    Its lines are "name|transcript|recording|text"; a fifth field is ignored.
    """
    rows = []
    for line in (folder / "meta.lst").read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        name, said, recording, text = line.split("|")[:4]
        rows.append(
            {
                "utt": name,
                "prompt_text": said,
                "prompt_wav": read_media(folder / recording),
                "infer_text": text,
            }
        )
    return rows
