"""Which checkpoint a command uses."""

from pathlib import Path

from sglang_omni.checksums import check_files
from sglang_omni.errors import CheckpointError

MING_MINI = Path(__file__).resolve().parents[1] / "checkpoints" / "ming-mini"
"""A small model in the released layout, which comes with the package."""


def find_checkpoint(model_path: Path | None) -> Path:
    """The given folder, or Ming-mini's.

    Raises `CheckpointError` when the folder is not there, or Ming-mini's files are damaged.
    """
    if model_path is None:
        check_files(MING_MINI)
        return MING_MINI
    if not (model_path / "config.json").exists():
        raise CheckpointError(f"{model_path} holds no config.json: not a checkpoint folder")
    return model_path.resolve()
