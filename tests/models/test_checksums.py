"""What `write_checksums` notes, `verify_checksums` and sha256sum hold the files to."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from sglang_omni.models.checksums import CHECKSUM_FILE, verify_checksums, write_checksums
from sglang_omni.protocol.errors import CheckpointError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "talker").mkdir()
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "talker" / "two words").write_bytes(b"\x00\xff")
    write_checksums(tmp_path)
    return tmp_path


def test_untouched_files_pass(folder: Path) -> None:
    verify_checksums(folder)
    write_checksums(folder)
    verify_checksums(folder)
    subprocess.run(["sha256sum", "--check", "--quiet", CHECKSUM_FILE], cwd=folder, check=True)


def test_a_hidden_file_is_no_part_of_the_folder(folder: Path) -> None:
    hidden = folder / ".unpacked"
    hidden.write_text("1")
    write_checksums(folder)
    hidden.unlink()
    verify_checksums(folder)


@pytest.mark.parametrize(
    ("harm", "complaint"),
    [
        (lambda file: file.write_bytes(b"\x00\xfe"), "is damaged"),
        (lambda file: file.unlink(), "is missing"),
        (lambda file: (file.parents[1] / CHECKSUM_FILE).unlink(), f"contains no {CHECKSUM_FILE}"),
    ],
)
def test_a_harmed_folder_is_refused(
    folder: Path, harm: Callable[[Path], object], complaint: str
) -> None:
    harm(folder / "talker" / "two words")
    with pytest.raises(CheckpointError, match=complaint):
        verify_checksums(folder)
