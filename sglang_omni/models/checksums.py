"""Checksums of a folder's files, in the form that `sha256sum --check` reads."""

import hashlib
from pathlib import Path

from sglang_omni.protocol.errors import CheckpointError

CHECKSUM_FILE = "SHA256SUMS"


def write_checksums(folder: Path) -> None:
    """Note the checksum of every file in `folder`."""
    paths = sorted(
        path for path in folder.rglob("*") if path.is_file() and path.name != CHECKSUM_FILE
    )
    lines = [
        f"{_compute_checksum(path)}  {path.relative_to(folder).as_posix()}\n" for path in paths
    ]
    (folder / CHECKSUM_FILE).write_text("".join(lines))


def verify_checksums(folder: Path) -> None:
    """Raises `CheckpointError` where a noted file is not there, or not as it was."""
    if not (folder / CHECKSUM_FILE).exists():
        raise CheckpointError(f"{folder} holds no {CHECKSUM_FILE}")
    for line in (folder / CHECKSUM_FILE).read_text().splitlines():
        wanted, name = line.split("  ", 1)
        if not (folder / name).is_file():
            raise CheckpointError(f"{folder / name} is missing")
        if _compute_checksum(folder / name) != wanted:
            raise CheckpointError(f"{folder / name} is damaged: its SHA-256 is not as noted")


def _compute_checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
