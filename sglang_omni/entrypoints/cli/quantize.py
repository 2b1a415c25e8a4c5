"""`sgl-omni quantize SRC DST --fp8`: a checkpoint in bfloat16 becomes one in block FP8.

It works on one piece of a shard at a time, so that memory stays small whatever the size of the
model. Files appear whole, and `config.json` last: a run that was cut off is no checkpoint yet, and
running it again goes on where it stopped.
"""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from tqdm import tqdm

from sglang_omni.models.checkpoint_files import INDEX_FILE
from sglang_omni.models.ming.config import read_json
from sglang_omni.models.ming.thinker.fp8 import quantize_weight
from sglang_omni.models.ming.thinker.fp8_layout import (
    QUANTIZATION_CONFIG,
    SCALE_SUFFIX,
    is_quantized,
)
from sglang_omni.models.weights import map_shards
from sglang_omni.protocol.errors import CheckpointError, StartupError

# Bytes of the source that are in memory at once; what they become is held beside them.
PIECE_BYTES = 4 << 30
# Names the source of a folder that is not complete yet.
UNFINISHED = "quantizing.json"
CONFIG = "config.json"


@dataclass(frozen=True)
class Piece:
    """Tensors of one source file that become one file; `source_bytes` is their size as stored."""

    source: str
    target: str
    names: tuple[str, ...]
    source_bytes: int


def quantize(source: Path, target: Path, piece_bytes: int = PIECE_BYTES) -> None:
    """Write an FP8 checkpoint to `target`, printing progress in GB.

    Raises `CheckpointError` for a source that is missing, broken or quantised, and `StartupError`
    for a target that holds something else.
    """
    source, target = source.resolve(), target.absolute()
    config = _read_config(source)
    pieces = list(plan_pieces(source, piece_bytes))
    _open_target(source, target)
    total = sum(piece.source_bytes for piece in pieces)
    with tqdm(total=total, unit="B", unit_scale=True, desc="quantising") as bar:
        for piece in pieces:
            _quantise_piece(source, target, piece)
            bar.update(piece.source_bytes)
    _copy_others(source, target, {piece.source for piece in pieces})
    _write_json(target / INDEX_FILE, _index(target, pieces))
    _write_json(target / CONFIG, {**config, "quantization_config": QUANTIZATION_CONFIG})
    (target / UNFINISHED).unlink()


def _read_config(source: Path) -> dict[str, object]:
    if not (source / CONFIG).exists():
        raise CheckpointError(f"{source} holds no {CONFIG}: not a checkpoint folder")
    config: dict[str, object] = read_json(source / CONFIG)
    if "quantization_config" in config:
        raise CheckpointError(f"{source} is quantised already")
    return config


def plan_pieces(source: Path, piece_bytes: int) -> Iterator[Piece]:
    """Cut the shards of a checkpoint into pieces of at most `piece_bytes`, in order."""
    shards: dict[str, list[str]] = {}
    for name, file in map_shards(source).items():
        shards.setdefault(file, []).append(name)
    for file in sorted(shards):
        with safe_open(source / file, framework="pt") as shard:
            sizes = {name: _stored_bytes(shard, name) for name in sorted(shards[file])}
        groups = _groups(sizes, piece_bytes)
        for number, names in enumerate(groups, 1):
            stem = Path(file).stem
            target = file if len(groups) == 1 else f"{stem}-part-{number:03d}.safetensors"
            yield Piece(file, target, tuple(names), sum(sizes[name] for name in names))


def _stored_bytes(shard: safe_open, name: str) -> int:
    """Bytes of a tensor, from the header alone."""
    view, count = shard.get_slice(name), 1
    for size in view.get_shape():
        count *= size
    return count * {"F64": 8, "I64": 8, "F32": 4, "I32": 4, "BF16": 2, "F16": 2}.get(
        view.get_dtype(), 1
    )


def _groups(sizes: dict[str, int], limit: int) -> list[list[str]]:
    """Names in order, in groups of at most `limit` bytes; one larger tensor is alone."""
    groups: list[list[str]] = []
    room = 0
    for name, size in sizes.items():
        if not groups or size > room:
            groups.append([])
            room = limit
        groups[-1].append(name)
        room -= size
    return groups


def _open_target(source: Path, target: Path) -> None:
    """Begin a folder, or take up the one that a run over the same source left."""
    identity = {"source": str(source)}
    if (target / UNFINISHED).exists():
        if read_json(target / UNFINISHED) != identity:
            raise StartupError(f"{target} was begun from another source; remove it first")
        return
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise StartupError(f"{target} exists and is not an empty folder")
    try:
        target.mkdir(parents=True, exist_ok=True)
        _write_json(target / UNFINISHED, identity)
    except OSError as error:
        raise StartupError(f"cannot write to {target}: {error}") from error


def _quantise_piece(source: Path, target: Path, piece: Piece) -> None:
    done = target / piece.target
    if done.exists():
        return
    tensors: dict[str, torch.Tensor] = {}
    with safe_open(source / piece.source, framework="pt") as shard:
        for name in piece.names:
            tensor = shard.get_tensor(name)
            if is_quantized(name):
                tensors[name], tensors[name + SCALE_SUFFIX] = quantize_weight(tensor)
            else:
                tensors[name] = tensor
    unfinished = done.with_suffix(".unfinished")
    save_file(tensors, unfinished, metadata={"format": "pt"})
    # `save_file` keeps its file from everyone but its owner.
    unfinished.chmod(0o644)
    unfinished.replace(done)


def _copy_others(source: Path, target: Path, shards: set[str]) -> None:
    """Everything but the weights, the index and the configuration: tokenizer, talker, voices."""
    for path in sorted(source.rglob("*")):
        place = path.relative_to(source)
        if path.is_dir() or str(place) in {*shards, INDEX_FILE, CONFIG}:
            continue
        copy = target / place
        if copy.exists() and copy.stat().st_size == path.stat().st_size:
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        unfinished = copy.with_name(copy.name + ".unfinished")
        shutil.copyfile(path, unfinished)
        unfinished.replace(copy)


def _index(target: Path, pieces: list[Piece]) -> dict[str, object]:
    weight_map: dict[str, str] = {}
    total = 0
    for piece in pieces:
        with safe_open(target / piece.target, framework="pt") as shard:
            weight_map |= dict.fromkeys(shard.keys(), piece.target)
            total += sum(_stored_bytes(shard, name) for name in shard.keys())  # noqa: SIM118
    return {"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))}


def _write_json(path: Path, value: object) -> None:
    """Replace a file at once."""
    unfinished = path.with_name(path.name + ".unfinished")
    unfinished.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    os.replace(unfinished, path)
