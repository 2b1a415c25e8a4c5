"""What can be known to fail before anything is loaded: names, files and folders."""

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from sglang_omni.config.options import Config
from sglang_omni.protocol.errors import ConfigError, StartupError, UnknownVoice


def check_config(config: Config) -> None:
    """Check what a server needs of this machine, beside its checkpoint, cards and port.

    Raises `ConfigError` that names the option.
    """
    if not config.served_model_name.strip():
        raise ConfigError("served_model_name must not be empty", param="served_model_name")
    for name in ("voices_dir", "profile_folder"):
        folder = getattr(config, name)
        if folder is not None:
            require_folder(folder, name)
    local = config.allowed_local_media_path
    if local is not None and not local.is_dir():
        message = f"allowed_local_media_path: there is no folder {local}"
        raise ConfigError(message, param="allowed_local_media_path")


def require_folder(folder: Path, name: str) -> None:
    """Make the folder, if need be, and see that files can be made in it.

    Raises `ConfigError` that names the option `name`.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{name} {folder}: {error.strerror}", param=name) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(f"{name} {folder} is not writable", param=name)


def require_own_folder(folder: Path, name: str) -> None:
    """Make the folder, and see that it is this user's: in a shared place another's could be a link.

    Raises `ConfigError` that names the option or variable `name`.
    """
    require_folder(folder, name)
    if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
        raise ConfigError(f"{name} {folder} belongs to another user", param=name)


def require_output(path: Path) -> None:
    """See that the file `path` can be written; one that exists stays as it is.

    Raises `StartupError`.
    """
    if not path.absolute().parent.is_dir():
        raise StartupError(f"cannot write {path}: there is no folder {path.parent}")
    try:
        _try_to_write(path)
    except OSError as error:
        raise unwritable(path, error) from None


def unwritable(path: Path, error: OSError) -> StartupError:
    """Return what to tell of a file that could not be written."""
    return StartupError(f"cannot write {path}: {error.strerror}")


def choose_voice(name: str | None, presets: Sequence[str]) -> str:
    """Return the named preset, or the first. Raises `UnknownVoice` that lists them."""
    if name is not None and name not in presets:
        raise UnknownVoice(f"no voice {name!r}; the checkpoint has {', '.join(presets)}")
    return name or presets[0]


def _try_to_write(path: Path) -> None:
    """Open the file as its writer will. Permissions alone do not tell: root passes them all, and
    some file systems take no new files."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        path.unlink()
        return
    # To open a pipe would wait for its reader.
    if not stat.S_ISFIFO(path.stat().st_mode):
        os.close(os.open(path, os.O_WRONLY))
