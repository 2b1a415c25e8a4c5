"""Implements `sgl-omni quantize SRC DST`: converts a bfloat16 checkpoint to FP8 or four bits.

It converts the folders that the model family names: the thinker, and what draws images. It
processes one part of a shard at a time, so that memory use does not depend on the size of the
model. With chats to calibrate with, the family writes the thinker's experts, layer by layer. Files
are written atomically, and `config.json` last. An interrupted run therefore leaves no valid
checkpoint; running the command again continues where it stopped.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import safe_open
from tqdm import tqdm

from sglang_omni.entrypoints.cli.calibration_file import hash_file, read_chats
from sglang_omni.models.base import HeadForm, WeightForm
from sglang_omni.models.calibration import Calibrator
from sglang_omni.models.checkpoint_files import QUANTIZATION_KEY, WEIGHTS_FILE
from sglang_omni.models.checksums import CHECKSUM_FILE
from sglang_omni.models.json_file import read_json
from sglang_omni.models.quantized_folder import QuantizedFolder
from sglang_omni.models.registry import family_of
from sglang_omni.models.weights import map_shards, save_tensors
from sglang_omni.protocol.errors import CheckpointError, InvalidRequest, StartupError

# Bytes of the source to load at once; the quantized tensors are in memory beside them.
PART_BYTES = 4 << 30
# File in an incomplete target folder that names its source.
UNFINISHED = "quantizing.json"
CONFIG = "config.json"


@dataclass(frozen=True)
class ShardPart:
    """Tensors of one source file that become one target file.

    `source_bytes` is their size in the source file.
    """

    source: str
    target: str
    names: tuple[str, ...]
    source_bytes: int


@dataclass(frozen=True)
class FolderPlan:
    """A folder to convert: where it lies, what it becomes, its shards and their parts."""

    source: Path
    target: Path
    folder: QuantizedFolder
    shards: frozenset[str]
    parts: tuple[ShardPart, ...]

    @property
    def index(self) -> str:
        """Return the name of the index of its weights."""
        return f"{self.folder.weights_file}.index.json"

    def list_replaced(self) -> list[Path]:
        """Return the source files that are not copied, because the target has others."""
        return [self.source / name for name in (*self.shards, self.index, CONFIG)]


@dataclass(frozen=True)
class CalibrationOptions:
    """The file of chats to calibrate with, and the device that computes."""

    file: Path
    device: str = "cpu"


def quantize(
    source: Path,
    target: Path,
    form: WeightForm = WeightForm.FP8,
    max_part_bytes: int = PART_BYTES,
    calibration: CalibrationOptions | None = None,
    head: HeadForm = HeadForm.FP8,
) -> None:
    """Write a checkpoint in a form to `target`, and print the progress.

    Raises:
        CheckpointError: The source is missing, broken or quantized already.
        StartupError: The target holds something else, or the file of chats is malformed.
    """
    source, target = source.resolve(), target.absolute()
    folders = _list_folders(source, form, head)
    calibrator = None if calibration is None else _build_calibrator(source, form, calibration)
    plans = [_plan_folder(source, target, one, max_part_bytes, calibrator) for one in folders]
    identity = _identify(source, form, head, calibration)
    _prepare_target(target, identity)
    calibrated: tuple[str, ...] = ()
    if calibrator is not None:
        report = calibrator.write_files(target)
        calibrated = report.files
        print(*report.lines, sep="\n")
    total_bytes = sum(part.source_bytes for plan in plans for part in plan.parts)
    with tqdm(total=total_bytes, unit="B", unit_scale=True, desc="quantizing") as bar:
        for plan in plans:
            plan.target.mkdir(exist_ok=True)
            for part in plan.parts:
                _quantize_part(plan, part)
                bar.update(part.source_bytes)
    _copy_other_files(source, target, {path for plan in plans for path in plan.list_replaced()})
    # The checkpoint's own configuration, which makes it one, comes last.
    for plan in reversed(plans):
        files = [part.target for part in plan.parts]
        if plan.target == target:
            files += calibrated
        _write_json(plan.target / plan.index, _build_index(plan.target, files))
        config = read_json(plan.source / CONFIG)
        quantization = {QUANTIZATION_KEY: plan.folder.quantization_config}
        _write_json(plan.target / CONFIG, {**config, **quantization})
    (target / UNFINISHED).unlink()


def _build_calibrator(
    source: Path, form: WeightForm, calibration: CalibrationOptions
) -> Calibrator:
    """Read the chats. Raises `StartupError` if they are malformed."""
    chats = read_chats(calibration.file)
    try:
        return family_of(source).calibrator(source, form, chats, calibration.device)
    except InvalidRequest as error:
        raise StartupError(f"{calibration.file}: {error.message}") from error


def _plan_folder(
    source: Path,
    target: Path,
    folder: QuantizedFolder,
    max_part_bytes: int,
    calibrator: Calibrator | None,
) -> FolderPlan:
    """Plan a folder; a calibrator writes tensors of the checkpoint's own folder."""
    is_covered = calibrator.covers if calibrator and folder.path == Path() else _covers_nothing
    path = source / folder.path
    shards = frozenset(map_shards(path, folder.weights_file).values())
    parts = tuple(plan_parts(path, max_part_bytes, folder.weights_file, is_covered))
    return FolderPlan(path, target / folder.path, folder, shards, parts)


def _covers_nothing(_: str) -> bool:
    return False


def select_calibration(
    form: WeightForm, file: Path | None, device: str | None
) -> CalibrationOptions | None:
    """Return the calibration that the options of the command select, or None.

    Raises:
        StartupError: They contradict each other.
    """
    if file is None:
        if device is not None:
            raise StartupError("--device needs --calibration")
        return None
    if form is WeightForm.FP8:
        raise StartupError("--calibration needs --int4")
    return CalibrationOptions(file, device or CalibrationOptions.device)


def select_form(int4: bool, asymmetric: bool) -> WeightForm:
    """Return the form that the options of the command select.

    Raises:
        StartupError: They contradict each other.
    """
    if asymmetric and not int4:
        raise StartupError("--asymmetric needs --int4")
    if not int4:
        return WeightForm.FP8
    return WeightForm.INT4_ASYMMETRIC if asymmetric else WeightForm.INT4


def _list_folders(source: Path, form: WeightForm, head: HeadForm) -> list[QuantizedFolder]:
    """Return the folders of a checkpoint that are to be converted. Raises `CheckpointError`."""
    if not (source / CONFIG).exists():
        raise CheckpointError(f"{source} is not a checkpoint folder: it has no {CONFIG}")
    if QUANTIZATION_KEY in read_json(source / CONFIG):
        raise CheckpointError(f"{source} is quantized already")
    return [
        folder
        for folder in family_of(source).quantized_folders(source, form, head)
        if QUANTIZATION_KEY not in read_json(source / folder.path / CONFIG)
    ]


def plan_parts(
    source: Path,
    max_part_bytes: int,
    weights_file: str = WEIGHTS_FILE,
    is_covered: Callable[[str], bool] = _covers_nothing,
) -> Iterator[ShardPart]:
    """Split the shards of a folder into parts of at most `max_part_bytes`, in order.

    Tensors for which `is_covered` is true are left out.
    """
    shards: dict[str, list[str]] = {}
    for name, file in map_shards(source, weights_file).items():
        if not is_covered(name):
            shards.setdefault(file, []).append(name)
    for file in sorted(shards):
        with safe_open(source / file, framework="pt") as shard:
            sizes = {name: _stored_bytes(shard, name) for name in sorted(shards[file])}
        groups = _group_by_size(sizes, max_part_bytes)
        for number, names in enumerate(groups, 1):
            stem = Path(file).stem
            target = file if len(groups) == 1 else f"{stem}-part-{number:03d}.safetensors"
            yield ShardPart(file, target, tuple(names), sum(sizes[name] for name in names))


def _stored_bytes(shard: safe_open, name: str) -> int:
    """Return the bytes of a tensor as stored, from the file's header alone."""
    view, num_elements = shard.get_slice(name), 1
    for size in view.get_shape():
        num_elements *= size
    element_bytes = {"F64": 8, "I64": 8, "F32": 4, "I32": 4, "BF16": 2, "F16": 2}
    return num_elements * element_bytes.get(view.get_dtype(), 1)


def _group_by_size(sizes: dict[str, int], max_bytes: int) -> list[list[str]]:
    """Group names in order, up to `max_bytes` a group; a larger tensor has a group of its own."""
    groups: list[list[str]] = []
    free_bytes = 0
    for name, size in sizes.items():
        if not groups or size > free_bytes:
            groups.append([])
            free_bytes = max_bytes
        groups[-1].append(name)
        free_bytes -= size
    return groups


def _identify(
    source: Path, form: WeightForm, head: HeadForm, calibration: CalibrationOptions | None
) -> dict[str, str]:
    """Return what a run that continues another must have in common with it."""
    identity = {"source": str(source), "form": form, "head": head}
    if calibration is not None:
        identity["calibration"] = hash_file(calibration.file)
    return identity


def _prepare_target(target: Path, identity: dict[str, str]) -> None:
    """Create the folder, or continue one that an earlier run of the same identity left."""
    if (target / UNFINISHED).exists():
        if read_json(target / UNFINISHED) != identity:
            raise StartupError(
                f"{target} holds the incomplete result of another source or form, or of other "
                "chats; remove it first"
            )
        return
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise StartupError(f"{target} exists and is not an empty folder")
    try:
        target.mkdir(parents=True, exist_ok=True)
        _write_json(target / UNFINISHED, identity)
    except OSError as error:
        raise StartupError(f"cannot write to {target}: {error}") from error


def _quantize_part(plan: FolderPlan, part: ShardPart) -> None:
    path = plan.target / part.target
    if path.exists():
        return
    tensors: dict[str, torch.Tensor] = {}
    with safe_open(plan.source / part.source, framework="pt") as shard:
        for name in part.names:
            tensors |= plan.folder.convert(name, shard.get_tensor(name))
    save_tensors(path, tensors)


def _copy_other_files(source: Path, target: Path, replaced: set[Path]) -> None:
    """Copy all files but those that are replaced: tokenizer, talker, voices.

    Checksums of the source's files are left out as well: they are not those of the target's.
    """
    for path in sorted(source.rglob("*")):
        if path.is_dir() or path in replaced or path == source / CHECKSUM_FILE:
            continue
        copy = target / path.relative_to(source)
        if copy.exists() and copy.stat().st_size == path.stat().st_size:
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        unfinished = copy.with_name(copy.name + ".unfinished")
        shutil.copyfile(path, unfinished)
        unfinished.replace(copy)


def _build_index(folder: Path, files: Sequence[str]) -> dict[str, object]:
    weight_map: dict[str, str] = {}
    total_bytes = 0
    for file in files:
        with safe_open(folder / file, framework="pt") as shard:
            weight_map |= dict.fromkeys(shard.keys(), file)
            total_bytes += sum(_stored_bytes(shard, name) for name in shard.keys())  # noqa: SIM118
    return {"metadata": {"total_size": total_bytes}, "weight_map": dict(sorted(weight_map.items()))}


def _write_json(path: Path, value: object) -> None:
    """Write a file atomically."""
    unfinished = path.with_name(path.name + ".unfinished")
    unfinished.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    os.replace(unfinished, path)
