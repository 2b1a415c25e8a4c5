"""Reads a secret that the server presents to another one."""

import os
from pathlib import Path

from sglang_omni.protocol.errors import ConfigError


def read_secret(source: str, option: str) -> str:
    """Return the first line of `file:PATH`, or the value of `env:NAME`.

    A secret itself is rejected, because it would show in the process list and in the printed
    configuration.

    Args:
        source: Where the secret is.
        option: Name of the option, for errors.

    Raises:
        ConfigError: The source is invalid or empty. The message never quotes a secret.
    """
    kind, _, name = source.partition(":")
    if kind not in ("env", "file") or not name:
        raise ConfigError(
            f"{option} takes file:PATH or env:NAME, not a secret itself, which the process list "
            "would show",
            param=option,
        )
    text = os.environ.get(name, "") if kind == "env" else _read_file(Path(name), option)
    secret = text.partition("\n")[0].rstrip("\r")
    if not secret:
        raise ConfigError(f"{option}: there is nothing in {source}", param=option)
    return secret


def _read_file(file: Path, option: str) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        message = f"{option}: cannot read {file}: {type(error).__name__}"
        raise ConfigError(message, param=option) from None
