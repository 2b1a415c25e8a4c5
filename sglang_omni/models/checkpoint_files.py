"""Which files of a folder hold a checkpoint's tensors. No torch."""

from pathlib import Path

from sglang_omni.models.json_file import read_json
from sglang_omni.protocol.errors import CheckpointError

INDEX_FILE = "model.safetensors.index.json"
WEIGHTS_FILE = "model.safetensors"


def list_shard_files(folder: Path) -> list[Path]:
    """The files that the index names, or the single file. Raises `CheckpointError`."""
    if (folder / INDEX_FILE).exists():
        files = sorted(set(read_json(folder / INDEX_FILE)["weight_map"].values()))
    elif (folder / WEIGHTS_FILE).exists():
        files = [WEIGHTS_FILE]
    else:
        raise CheckpointError(f"{folder} holds neither {INDEX_FILE} nor {WEIGHTS_FILE}")
    absent = [file for file in files if not (folder / file).exists()]
    if absent:
        raise CheckpointError(f"{folder / absent[0]} is missing (named by {INDEX_FILE})")
    return [folder / file for file in files]
