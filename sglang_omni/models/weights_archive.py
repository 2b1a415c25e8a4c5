"""Pack the weights that come with the repository; xz compresses bfloat16 by a third.

The weights of a checkpoint folder `X` are in `X.weights.tar.xz` beside it. They are unpacked into
the folder when the package is built or, in a source tree, at first use. `python -m
sglang_omni.models.weights_archive FOLDER` packs the weights of a folder. Standard library only: a
build runs this before anything is installed.
"""

import fcntl
import hashlib
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

SUFFIX = ".weights.tar.xz"
# Contains the checksum of the archive once all of it is unpacked.
MARKER_FILE = ".weights-unpacked"


def get_archive_path(folder: Path) -> Path:
    """Return the path of the packed weights of a checkpoint folder."""
    return folder.with_name(folder.name + SUFFIX)


def pack_weights(folder: Path) -> Path:
    """Pack every `.safetensors` file of a folder and return the archive.

    Equal files give equal archives.
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
    """Unpack the weights of a folder unless that is done or there is no archive.

    Files appear only when complete. Concurrent processes wait for each other.

    Raises:
        OSError: The folder cannot be written.
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
    """Return the approximate size in bytes of the unpacked weights of a folder."""
    return get_archive_path(folder).stat().st_size * 3 // 2


def _read_marker(folder: Path) -> str:
    """Return the checksum of the archive that was unpacked last, or ""."""
    marker = folder / MARKER_FILE
    return marker.read_text() if marker.exists() else ""


def _unpack(archive: Path, folder: Path) -> None:
    with (
        tempfile.TemporaryDirectory(dir=folder, prefix=".unpacking-") as temp_dir,
        tarfile.open(archive) as packed,
    ):
        for member in packed:
            # Without `extractall`: the Python of Debian 12 knows no filters of unsafe members.
            content = packed.extractfile(member)
            assert content is not None, f"{archive}: {member.name} is no file"
            part = Path(temp_dir) / Path(member.name).name
            with content, part.open("wb") as file:
                shutil.copyfileobj(content, file)
            (folder / member.name).parent.mkdir(parents=True, exist_ok=True)
            part.replace(folder / member.name)


if __name__ == "__main__":
    print(f"wrote {pack_weights(Path(sys.argv[1]))}")
