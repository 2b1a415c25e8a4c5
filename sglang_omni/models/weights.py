"""Read sharded safetensors by name, and load them strictly into plain PyTorch modules."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from sglang_omni.models.checkpoint_files import WEIGHTS_FILE, list_shard_files
from sglang_omni.models.json_file import read_json
from sglang_omni.protocol.errors import CheckpointError


@dataclass(frozen=True)
class LoadReport:
    """Result of a strict load: number of loaded tensors, and names of ignored tensors."""

    loaded: int
    ignored: tuple[str, ...]


class TensorFolder(Mapping[str, torch.Tensor]):
    """The tensors of a checkpoint folder, read lazily, with one file open at a time.

    The folder has shards and `model.safetensors.index.json`, or a single `model.safetensors`; or
    the same under another name, `weights_file`.

    Raises:
        CheckpointError: A shard or tensor is missing; the message names it.
    """

    def __init__(self, folder: Path, weights_file: str = WEIGHTS_FILE) -> None:
        self.folder = folder
        self._shard_of = map_shards(folder, weights_file)
        self._open: tuple[str, safe_open] | None = None

    def __getitem__(self, name: str) -> torch.Tensor:
        if name not in self._shard_of:
            raise CheckpointError(f"{self.folder}: tensor {name!r} is missing")
        return self._open_shard(self._shard_of[name]).get_tensor(name)

    def __contains__(self, name: object) -> bool:
        return name in self._shard_of

    def __iter__(self) -> Iterator[str]:
        """Yield names grouped by shard, so that reading in order opens each file once."""
        return iter(sorted(self._shard_of, key=lambda name: (self._shard_of[name], name)))

    def __len__(self) -> int:
        return len(self._shard_of)

    def _open_shard(self, file: str) -> safe_open:
        if self._open is None or self._open[0] != file:
            self._open = (file, safe_open(self.folder / file, framework="pt"))
        return self._open[1]


def map_shards(folder: Path, weights_file: str = WEIGHTS_FILE) -> dict[str, str]:
    """Map each tensor name to its file; check that the files contain what the index lists."""
    file_by_name: dict[str, str] = {}
    for path in list_shard_files(folder, weights_file):
        with safe_open(path, framework="pt") as shard:
            file_by_name.update(dict.fromkeys(shard.keys(), path.name))
    file_by_name_in_index: dict[str, str] = {}
    index = folder / f"{weights_file}.index.json"
    if index.exists():
        file_by_name_in_index = read_json(index)["weight_map"]
    missing = sorted(
        name for name, file in file_by_name_in_index.items() if file_by_name.get(name) != file
    )
    if missing:
        raise CheckpointError(
            f"{folder}: tensor {missing[0]!r} is missing in {file_by_name_in_index[missing[0]]}"
        )
    return file_by_name


def save_tensors(
    path: Path, tensors: dict[str, torch.Tensor], metadata: Mapping[str, str] | None = None
) -> None:
    """Write a file of safetensors, which is visible only once it is complete."""
    unfinished = path.with_suffix(".unfinished")
    save_file(tensors, unfinished, metadata={"format": "pt", **(metadata or {})})
    # `save_file` creates files that only their owner can read.
    unfinished.chmod(0o644)
    unfinished.replace(path)


@contextmanager
def use_device_and_dtype(device: torch.device, dtype: torch.dtype) -> Iterator[None]:
    """Construct modules within the context directly on `device` in `dtype`."""
    previous = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with device:
            yield
    finally:
        torch.set_default_dtype(previous)


def load_strict(
    module: torch.nn.Module,
    tensors: Mapping[str, torch.Tensor],
    *,
    prefix: str = "",
    ignore: Callable[[str], bool] = lambda name: False,
) -> LoadReport:
    """Copy every parameter and persistent buffer of `module` from `tensors[prefix + name]`.

    Values are cast to the dtype of the module. Tensors below `prefix` that the module does not have
    must satisfy `ignore(name)` (name without the prefix); the report lists them.

    Raises:
        CheckpointError: A tensor is missing, unexpected or has the wrong shape, or one for an FP8
            target is not FP8.
    """
    targets = module.state_dict(keep_vars=True)
    names = [name[len(prefix) :] for name in tensors if name.startswith(prefix)]
    missing = sorted(set(targets) - set(names))
    if missing:
        raise CheckpointError(
            f"tensor {prefix + missing[0]!r} is missing ({len(missing)} missing in total)"
        )
    extra = sorted(set(names) - set(targets))
    unexpected = [name for name in extra if not ignore(name)]
    if unexpected:
        raise CheckpointError(
            f"unexpected tensor {prefix + unexpected[0]!r}: it is not part of the model"
        )
    with torch.no_grad():
        for name in names:
            if name in targets:
                _copy_tensor(targets[name], tensors[prefix + name], prefix + name)
    return LoadReport(len(targets), tuple(prefix + name for name in extra))


def _copy_tensor(target: torch.Tensor, source: torch.Tensor, name: str) -> None:
    if target.shape != source.shape:
        raise CheckpointError(
            f"tensor {name!r} has shape {list(source.shape)}; expected {list(target.shape)}"
        )
    if target.dtype == torch.float8_e4m3fn and source.dtype != target.dtype:
        raise CheckpointError(f"tensor {name!r} is {source.dtype}; expected FP8 with a scale")
    target.copy_(source)
