"""What `write_checksums` notes, `check_files` and sha256sum hold the files to."""

import subprocess
from pathlib import Path

import pytest

from sglang_omni.models.checksums import NAME, check_files, write_checksums
from sglang_omni.protocol.errors import CheckpointError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "talker").mkdir()
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "talker" / "two words").write_bytes(b"\x00\xff")
    write_checksums(tmp_path)
    return tmp_path


def test_untouched_files_pass(folder: Path) -> None:
    check_files(folder)
    write_checksums(folder)
    check_files(folder)
    subprocess.run(["sha256sum", "--check", "--quiet", NAME], cwd=folder, check=True)


@pytest.mark.parametrize(
    ("harm", "complaint"),
    [
        (lambda file: file.write_bytes(b"\x00\xfe"), "is damaged"),
        (lambda file: file.unlink(), "is missing"),
        (lambda file: (file.parents[1] / NAME).unlink(), f"holds no {NAME}"),
    ],
)
def test_a_harmed_folder_is_refused(folder: Path, harm, complaint: str) -> None:
    harm(folder / "talker" / "two words")
    with pytest.raises(CheckpointError, match=complaint):
        check_files(folder)
