"""Files of this machine come from below one folder, and from nowhere else."""

import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from sglang_omni.media.fetch import FetchPolicy, fetch
from sglang_omni.media.local import read_local
from sglang_omni.protocol.errors import InvalidRequest
from tests.media.refusals import refused


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that may be read, beside a file that may not."""
    (tmp_path / "secret").write_bytes(b"secret")
    allowed = tmp_path / "allowed"
    (allowed / "sub").mkdir(parents=True)
    (allowed / "a b.png").write_bytes(b"picture")
    (allowed / "sub" / "inside").symlink_to(allowed / "a b.png")
    (allowed / "out").symlink_to(tmp_path / "secret")
    (allowed / "up").symlink_to(tmp_path)
    (allowed / "loop").symlink_to(allowed / "loop")
    os.mkfifo(allowed / "fifo")
    return allowed


@pytest.mark.parametrize(
    "name", ["{}/a b.png", "file://{}/a%20b.png", "file://localhost{}/a b.png", "{}/sub/inside"]
)
async def test_a_file_below_the_folder_is_read(folder: Path, name: str) -> None:
    policy = FetchPolicy(allowed_local_path=folder)
    assert await fetch(name.format(folder), policy) == b"picture"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("{}/../secret", "not below the allowed folder"),
        ("{}/sub/../../secret", "not below the allowed folder"),
        ("file://{}/%2e%2e/secret", "not below the allowed folder"),
        ("file://{}/..%2fsecret", "not below the allowed folder"),
        ("{}/out", "not below the allowed folder"),
        ("{}/up/secret", "not below the allowed folder"),
        ("{}/../allowed-not", "not below the allowed folder"),
        ("/etc/passwd", "not below the allowed folder"),
        ("/proc/self/environ", "not below the allowed folder"),
        ("{}", "not below the allowed folder"),
        ("{}/sub", "not a regular file"),
        ("{}/fifo", "not a regular file"),
        ("{}/missing", "does not exist or cannot be read"),
        ("{}/loop", "does not exist or cannot be read"),
        ("{}/a b.png\x00.png", "does not exist or cannot be read"),
        ("{}/" + "x" * 5000, "does not exist or cannot be read"),
        ("file://elsewhere{}/a b.png", "of the form file:///path"),
        ("file:a b.png", "of the form file:///path"),
        ("file://{}/a b.png?x", "of the form file:///path"),
    ],
)
async def test_no_path_leads_out_of_the_folder(folder: Path, name: str, message: str) -> None:
    policy = FetchPolicy(allowed_local_path=folder)
    told = await refused(name.format(folder), policy)
    assert message in told
    assert str(folder) not in told


async def test_a_device_is_no_file(tmp_path: Path) -> None:
    policy = FetchPolicy(allowed_local_path=Path("/dev"))
    assert await refused("/dev/zero", policy) == "the local path is not a regular file"


async def test_local_files_are_off_unless_allowed(folder: Path) -> None:
    for source in (f"{folder}/a b.png", f"file://{folder}/a b.png"):
        assert await refused(source) == "this server reads no local files"


async def test_a_local_file_has_a_limit(folder: Path) -> None:
    policy = FetchPolicy(allowed_local_path=folder, file_bytes=6)
    assert "more than 6 bytes" in await refused(f"{folder}/a b.png", policy)


async def test_a_folder_swapped_for_a_link_meanwhile_leads_nowhere(
    tmp_path: Path,
) -> None:
    allowed, secret = tmp_path / "allowed", tmp_path / "secret"
    for folder, text in ((allowed / "real", b"picture"), (secret, b"secret")):
        folder.mkdir(parents=True)
        (folder / "file").write_bytes(text)
    (allowed / "link").symlink_to(secret)
    ending, names = threading.Event(), ("real", "link", "spare")

    def swap() -> None:
        real, link, spare = (allowed / name for name in names)
        while not ending.is_set():
            for old, new in ((real, spare), (link, real), (real, link), (spare, real)):
                old.rename(new)

    swapping = threading.Thread(target=swap)
    swapping.start()
    policy, read = FetchPolicy(allowed_local_path=allowed), set()
    try:
        for _ in range(3_000):
            with suppress(InvalidRequest):
                read.add(read_local(f"{allowed}/real/file", policy))
    finally:
        ending.set()
        swapping.join()
    assert read == {b"picture"}
