"""Finds the checkpoint of a command."""

from pathlib import Path

from sglang_omni.models.checksums import verify_checksums
from sglang_omni.models.weights_archive import estimate_unpacked_bytes, unpack_weights
from sglang_omni.protocol.errors import CheckpointError

MING_MINI = Path(__file__).resolve().parents[2] / "checkpoints" / "ming-mini"
"""A small model in the released layout. It is part of the package."""


def find_checkpoint(model_path: Path | None) -> Path:
    """Return the folder of the checkpoint, Ming-mini's without `model_path`.

    Packed weights of a source tree are unpacked first.

    Raises:
        CheckpointError: The folder holds no checkpoint, or Ming-mini's files are damaged or cannot
            be unpacked.
    """
    folder = model_path or MING_MINI
    try:
        unpack_weights(folder)
    except OSError as error:
        raise CheckpointError(
            f"the packed weights cannot be unpacked into {folder}: {error.strerror}; they need "
            f"{estimate_unpacked_bytes(folder) / 1e6:.0f} MB there. Start once as a user who can "
            "write there, or install the package: its build unpacks them"
        ) from None
    if model_path is None:
        verify_checksums(MING_MINI)
        return MING_MINI
    if not (model_path / "config.json").exists():
        raise CheckpointError(f"{model_path} is not a checkpoint folder: it has no config.json")
    return model_path.resolve()
