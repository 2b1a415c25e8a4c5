"""Names in a checkpoint folder, and the list of its safetensors files. No torch."""

from pathlib import Path

from sglang_omni.models.json_file import read_json
from sglang_omni.protocol.errors import CheckpointError

INDEX_FILE = "model.safetensors.index.json"
WEIGHTS_FILE = "model.safetensors"
DIFFUSERS_WEIGHTS_FILE = "diffusion_pytorch_model.safetensors"
QUANTIZATION_KEY = "quantization_config"
"""What `config.json` says of a quantized form is under this key."""


def list_shard_files(folder: Path, weights_file: str = WEIGHTS_FILE) -> list[Path]:
    """Return the files that the index lists, or the single weights file.

    Raises:
        CheckpointError: There are no weights, or a listed file is missing.
    """
    index_file = f"{weights_file}.index.json"
    if (folder / index_file).exists():
        files = sorted(set(read_json(folder / index_file)["weight_map"].values()))
    elif (folder / weights_file).exists():
        files = [weights_file]
    else:
        raise CheckpointError(f"{folder} contains neither {index_file} nor {weights_file}")
    missing = [file for file in files if not (folder / file).exists()]
    if missing:
        raise CheckpointError(f"{folder / missing[0]} is missing (listed in {index_file})")
    return [folder / file for file in files]
