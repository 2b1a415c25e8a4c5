"""Which checkpoint a command uses."""

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from sglang_omni.errors import CheckpointError, StartupError


def find_checkpoint(model_path: Path | None) -> Path:
    """The given folder, or a tiny random checkpoint that is made once and kept in the cache.

    Raises `CheckpointError` when the folder is not there.
    """
    if model_path is None:
        return _tiny_checkpoint()
    if not (model_path / "config.json").exists():
        raise CheckpointError(f"{model_path} holds no config.json: not a checkpoint folder")
    return model_path.resolve()


def _tiny_checkpoint() -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    folder = base / "sglang-omni" / f"tiny-{version('sglang_omni')}"
    if not (folder / "config.json").exists():
        print(f"no --model-path: making a tiny random checkpoint in {folder}", flush=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        # In a process of its own, because it needs torch and this one must stay light.
        command = [sys.executable, "-m", "sglang_omni.cli", "make-tiny", str(folder)]
        if subprocess.run(command, check=False).returncode != 0:
            raise StartupError(f"could not make a tiny checkpoint in {folder}")
    return folder
