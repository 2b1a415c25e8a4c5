"""Weights that come with the repository: packed there, for bfloat16 shrinks by a third.

The weights of a checkpoint folder `X` lie beside it in `X.weights.tar.xz` and are unpacked into it
when the package is built, or where it runs from a source tree at first use. `python -m
sglang_omni.models.weights_archive FOLDER` packs the weights of a folder. Standard library only:
a build runs this before anything is installed.
"""

import fcntl
import hashlib
import os
import sys
import tarfile
import tempfile
from pathlib import Path

SUFFIX = ".weights.tar.xz"
# Holds the archive's checksum once all of it is unpacked.
MARKER_FILE = ".weights-unpacked"


def get_archive_path(folder: Path) -> Path:
    """Return where the packed weights of a checkpoint folder lie, if there are any."""
    return folder.with_name(folder.name + SUFFIX)


def pack_weights(folder: Path) -> Path:
    """Pack every `.safetensors` file of a folder; equal files give equal archives.

    Returns the archive.
    """
    archive = get_archive_path(folder)
    with tarfile.open(archive, "w:xz", preset=9) as packed:
        for path in sorted(folder.rglob("*.safetensors")):
            packed.add(path, path.relative_to(folder).as_posix(), filter=_strip_owner)
    return archive


def _strip_owner(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    member.mode = 0o644
    return member


def unpack_weights(folder: Path) -> None:
    """Unpack the weights of a folder unless that is done; nothing where there is no archive.

    Files appear whole, and processes that unpack at once wait for each other. Raises `OSError`
    where the folder cannot be written.
    """
    archive = get_archive_path(folder)
    if not archive.exists():
        return
    checksum = hashlib.sha256(archive.read_bytes()).hexdigest()
    if _read_marker(folder) == checksum:
        return
    with archive.open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _read_marker(folder) != checksum:
            _unpack(archive, folder)
            (folder / MARKER_FILE).write_text(checksum)


def estimate_unpacked_bytes(folder: Path) -> int:
    """Return about how many bytes the weights of a folder take once they are unpacked."""
    return get_archive_path(folder).stat().st_size * 3 // 2


def _read_marker(folder: Path) -> str:
    """Return the checksum of the archive that was unpacked last."""
    mark = folder / MARKER_FILE
    return mark.read_text() if mark.exists() else ""


def _unpack(archive: Path, folder: Path) -> None:
    with (
        tempfile.TemporaryDirectory(dir=folder, prefix=".unpacking-") as scratch,
        tarfile.open(archive) as packed,
    ):
        packed.extractall(scratch, filter="data")
        for name in packed.getnames():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(Path(scratch) / name, folder / name)


if __name__ == "__main__":
    print(f"wrote {pack_weights(Path(sys.argv[1]))}")
