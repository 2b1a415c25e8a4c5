"""Which checkpoint a command uses."""

from pathlib import Path

from sglang_omni.models.checksums import verify_checksums
from sglang_omni.models.weights_archive import estimate_unpacked_bytes, unpack_weights
from sglang_omni.protocol.errors import CheckpointError

MING_MINI = Path(__file__).resolve().parents[2] / "checkpoints" / "ming-mini"
"""A small model in the released layout, which comes with the package."""


def find_checkpoint(model_path: Path | None) -> Path:
    """The given folder, or Ming-mini's.

    Weights that come packed in a source tree are unpacked first. Raises `CheckpointError` when the
    folder is not there, or Ming-mini's files are damaged or cannot be unpacked.
    """
    folder = model_path or MING_MINI
    try:
        unpack_weights(folder)
    except OSError as error:
        raise CheckpointError(
            f"the packed weights cannot be unpacked into {folder}: {error.strerror}; that takes "
            f"{estimate_unpacked_bytes(folder) / 1e6:.0f} MB there, once. Start once as a user who "
            "may write there, or install the package, whose build unpacks them"
        ) from None
    if model_path is None:
        verify_checksums(MING_MINI)
        return MING_MINI
    if not (model_path / "config.json").exists():
        raise CheckpointError(f"{model_path} holds no config.json: not a checkpoint folder")
    return model_path.resolve()
