"""Read local files below one allowed folder."""

import os
import stat
from pathlib import Path
from urllib.parse import unquote_to_bytes, urlsplit

from sglang_omni.media.policy import FetchPolicy
from sglang_omni.protocol.errors import InvalidRequest


def read_local(source: str, policy: FetchPolicy) -> bytes:
    """Read an absolute path or `file:` URL. Blocks: call it in a thread.

    Raises `InvalidRequest` if it is not a regular file below the policy's folder after links and
    `..` are resolved, or if it is too large. The message does not reveal whether a file outside the
    folder exists.
    """
    if policy.allowed_local_path is None:
        raise InvalidRequest("this server reads no local files")
    try:
        root = policy.allowed_local_path.resolve(strict=True)
        path = Path(_parse_path(source)).resolve()
        _require_below(path, root)
        return _read(path, root, policy.file_bytes)
    except (OSError, ValueError, RuntimeError) as error:
        raise InvalidRequest("the local file does not exist or cannot be read") from error


def _parse_path(source: str) -> str:
    if source.startswith("/"):
        return source
    parts = urlsplit(source)
    if parts.netloc not in ("", "localhost") or parts.query or parts.fragment:
        raise InvalidRequest("a file: URL must be of the form file:///path")
    path = os.fsdecode(unquote_to_bytes(parts.path))
    if not path.startswith("/"):
        raise InvalidRequest("a file: URL must be of the form file:///path")
    return path


def _require_below(path: Path, root: Path) -> None:
    if root not in path.parents:
        raise InvalidRequest("the local file is not below the allowed folder")


def _read(path: Path, root: Path, max_bytes: int) -> bytes:
    # Non-blocking: opening a FIFO would otherwise block this thread until it has a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise InvalidRequest("the local path is not a regular file")
        # A parent folder may have been replaced by a link since the path was resolved.
        _require_below(Path(os.readlink(f"/proc/self/fd/{descriptor}")), root)
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(max_bytes + 1)
    finally:
        os.close(descriptor)
    if len(data) > max_bytes:
        raise InvalidRequest(f"the medium has more than {max_bytes} bytes")
    return data
