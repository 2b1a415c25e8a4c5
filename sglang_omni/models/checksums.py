"""Checksums of the files of a folder, in the format of `sha256sum --check`."""

import hashlib
from pathlib import Path

from sglang_omni.protocol.errors import CheckpointError

CHECKSUM_FILE = "SHA256SUMS"


def write_checksums(folder: Path) -> None:
    """Write the checksums of all files in `folder` but hidden ones, which are no part of it."""
    paths = sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and path.name != CHECKSUM_FILE and not path.name.startswith(".")
    )
    lines = [
        f"{_compute_checksum(path)}  {path.relative_to(folder).as_posix()}\n" for path in paths
    ]
    (folder / CHECKSUM_FILE).write_text("".join(lines))


def verify_checksums(folder: Path) -> None:
    """Verify all listed files; raise `CheckpointError` if one is missing or changed."""
    if not (folder / CHECKSUM_FILE).exists():
        raise CheckpointError(f"{folder} contains no {CHECKSUM_FILE}")
    for line in (folder / CHECKSUM_FILE).read_text().splitlines():
        expected, name = line.split("  ", 1)
        if not (folder / name).is_file():
            raise CheckpointError(f"{folder / name} is missing")
        if _compute_checksum(folder / name) != expected:
            raise CheckpointError(
                f"{folder / name} is damaged: its SHA-256 differs from {CHECKSUM_FILE}"
            )


def _compute_checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
