"""Which files of a folder hold a checkpoint's tensors. No torch."""

from pathlib import Path

from sglang_omni.models.json_file import read_json
from sglang_omni.protocol.errors import CheckpointError

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"


def shard_files(folder: Path) -> list[Path]:
    """The files that the index names, or the single file. Raises `CheckpointError`."""
    if (folder / INDEX).exists():
        files = sorted(set(read_json(folder / INDEX)["weight_map"].values()))
    elif (folder / SINGLE).exists():
        files = [SINGLE]
    else:
        raise CheckpointError(f"{folder} holds neither {INDEX} nor {SINGLE}")
    absent = [file for file in files if not (folder / file).exists()]
    if absent:
        raise CheckpointError(f"{folder / absent[0]} is missing (named by {INDEX})")
    return [folder / file for file in files]
