"""Checks names, files and folders before anything is loaded."""

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from sglang_omni.config.config_errors import make_option_error
from sglang_omni.config.tree import Config
from sglang_omni.entrypoints.http.shared_store.address import check_shared_store
from sglang_omni.protocol.errors import ConfigError, StartupError, UnknownVoice


def check_config(config: Config) -> None:
    """Check the names and folders of a server's configuration.

    Raises:
        ConfigError: A value cannot be used; `param` names the option.
    """
    names = config.served_model_name
    if not names or not all(name.strip() for name in names):
        raise make_option_error("served_model_name", "served_model_name must not be empty")
    for name in ("voices_dir", "profile_folder"):
        folder = getattr(config, name)
        if folder is not None:
            require_folder(folder, name)
    local = config.allowed_local_media_path
    if local is not None and not local.is_dir():
        raise make_option_error(
            "allowed_local_media_path",
            f"allowed_local_media_path: the folder {local} does not exist",
        )
    check_shared_store(config.shared_store)


def require_folder(folder: Path, name: str) -> None:
    """Create the folder if needed, and check that files can be created in it.

    Raises:
        ConfigError: It cannot be used; `param` is the option `name`.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{name} {folder}: {error.strerror}", param=name) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(f"{name} {folder} is not writable", param=name)


def require_own_folder(folder: Path, name: str) -> None:
    """Create the folder if needed, and check that it belongs to this user.

    In a shared folder, another user could have created it or placed a link there.

    Raises:
        ConfigError: It cannot be used; `param` is the option or variable `name`.
    """
    require_folder(folder, name)
    if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
        raise ConfigError(f"{name} {folder} belongs to another user", param=name)


def require_output(path: Path) -> None:
    """Check that the file `path` can be written, without changing an existing file.

    Raises `StartupError`.
    """
    if not path.absolute().parent.is_dir():
        raise StartupError(f"cannot write {path}: the folder {path.parent} does not exist")
    try:
        _check_writable(path)
    except OSError as error:
        raise make_write_error(path, error) from None


def make_write_error(path: Path, error: OSError) -> StartupError:
    """Return the error for a file that cannot be written."""
    return StartupError(f"cannot write {path}: {error.strerror}")


def choose_voice(name: str | None, presets: Sequence[str]) -> str:
    """Return the preset with this name, or the first. Raises `UnknownVoice` that lists them."""
    if name is not None and name not in presets:
        raise UnknownVoice(f"no voice {name!r}; the checkpoint has {', '.join(presets)}")
    return name or presets[0]


def _check_writable(path: Path) -> None:
    """Open the file like its writer will. Raises `OSError`.

    Permissions are not enough: root passes every check, and a file system may be read-only.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        path.unlink()
        return
    # Opening a pipe would block until it has a reader.
    if not stat.S_ISFIFO(path.stat().st_mode):
        os.close(os.open(path, os.O_WRONLY))
