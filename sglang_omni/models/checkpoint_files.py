"""List the safetensors files of a checkpoint folder. No torch."""

from pathlib import Path

from sglang_omni.models.json_file import read_json
from sglang_omni.protocol.errors import CheckpointError

INDEX_FILE = "model.safetensors.index.json"
WEIGHTS_FILE = "model.safetensors"


def list_shard_files(folder: Path) -> list[Path]:
    """Return the files that the index lists, or the single weights file.

    Raises:
        CheckpointError: There are no weights, or a listed file is missing.
    """
    if (folder / INDEX_FILE).exists():
        files = sorted(set(read_json(folder / INDEX_FILE)["weight_map"].values()))
    elif (folder / WEIGHTS_FILE).exists():
        files = [WEIGHTS_FILE]
    else:
        raise CheckpointError(f"{folder} contains neither {INDEX_FILE} nor {WEIGHTS_FILE}")
    missing = [file for file in files if not (folder / file).exists()]
    if missing:
        raise CheckpointError(f"{folder / missing[0]} is missing (listed in {INDEX_FILE})")
    return [folder / file for file in files]
