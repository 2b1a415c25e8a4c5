"""Read sharded safetensors by name, and load them strictly into plain PyTorch modules."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import safe_open

from sglang_omni.models.checkpoint_files import INDEX_FILE, list_shard_files
from sglang_omni.models.json_file import read_json
from sglang_omni.protocol.errors import CheckpointError


@dataclass(frozen=True)
class LoadReport:
    """What a strict load did. `ignored` lists the tensors that were left out on purpose."""

    loaded: int
    ignored: tuple[str, ...]


class TensorFolder(Mapping[str, torch.Tensor]):
    """The tensors of one checkpoint folder, read lazily, one file open at a time.

    Accepts a sharded folder (`model.safetensors.index.json`) or a single `model.safetensors`.
    Raises `CheckpointError` for a missing shard or tensor, naming it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._shard_of = map_shards(folder)
        self._open: tuple[str, safe_open] | None = None

    def __getitem__(self, name: str) -> torch.Tensor:
        if name not in self._shard_of:
            raise CheckpointError(f"{self.folder}: tensor {name!r} is missing")
        return self._shard(self._shard_of[name]).get_tensor(name)

    def __contains__(self, name: object) -> bool:
        return name in self._shard_of

    def __iter__(self) -> Iterator[str]:
        """Names, grouped by shard, so that reading in order opens each file once."""
        return iter(sorted(self._shard_of, key=lambda name: (self._shard_of[name], name)))

    def __len__(self) -> int:
        return len(self._shard_of)

    def _shard(self, file: str) -> safe_open:
        if self._open is None or self._open[0] != file:
            self._open = (file, safe_open(self.folder / file, framework="pt"))
        return self._open[1]


def map_shards(folder: Path) -> dict[str, str]:
    """Map each tensor name to its file, checking that the files hold what the index says."""
    found: dict[str, str] = {}
    for path in list_shard_files(folder):
        with safe_open(path, framework="pt") as shard:
            found.update(dict.fromkeys(shard.keys(), path.name))
    declared: dict[str, str] = {}
    if (folder / INDEX_FILE).exists():
        declared = read_json(folder / INDEX_FILE)["weight_map"]
    absent = sorted(name for name, file in declared.items() if found.get(name) != file)
    if absent:
        raise CheckpointError(f"{folder}: {absent[0]!r} is not in {declared[absent[0]]}")
    return found


@contextmanager
def use_device_and_dtype(device: torch.device, dtype: torch.dtype) -> Iterator[None]:
    """Modules built inside hold their weights in `dtype` on `device` from the start."""
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

    Values are cast to the module's dtype. Tensors below `prefix` that the module does not have
    must satisfy `ignore(name)` (name without the prefix); they are listed in the report.
    Raises `CheckpointError` for a missing tensor, a wrong shape or an unexpected tensor.
    """
    wanted = module.state_dict(keep_vars=True)
    present = [name[len(prefix) :] for name in tensors if name.startswith(prefix)]
    missing = sorted(set(wanted) - set(present))
    if missing:
        raise CheckpointError(f"tensor {prefix + missing[0]!r} is missing ({len(missing)} in all)")
    extra = sorted(set(present) - set(wanted))
    unexpected = [name for name in extra if not ignore(name)]
    if unexpected:
        raise CheckpointError(f"tensor {prefix + unexpected[0]!r} is not part of the model")
    with torch.no_grad():
        for name in present:
            if name in wanted:
                _copy_tensor(wanted[name], tensors[prefix + name], prefix + name)
    return LoadReport(len(wanted), tuple(prefix + name for name in extra))


def _copy_tensor(target: torch.Tensor, source: torch.Tensor, name: str) -> None:
    if target.shape != source.shape:
        raise CheckpointError(
            f"tensor {name!r} has shape {list(source.shape)}, the model needs {list(target.shape)}"
        )
    target.copy_(source)
