"""A temporary folder goes with its owner: at once if it ends in order, else at the next start."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sglang_omni.observability.temp_dir import TempFolder

OWNER = """
import sys, tempfile, time
from sglang_omni.observability.temp_dir import TempFolder

tempfile.tempdir = sys.argv[1]
folder = TempFolder("toy-")
(folder.path / "written").write_text("something")
print(folder.path, flush=True)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_killed_owners_folder_goes_and_a_living_ones_stays(folders: Path) -> None:
    command = [sys.executable, "-c", OWNER, str(folders)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        theirs = Path(owner.stdout.readline().strip())
        ours = TempFolder("toy-")
        assert (theirs / "written").exists()
        owner.kill()
        owner.wait()
        assert (theirs / "written").exists()
    third = TempFolder("toy-")
    assert not theirs.exists()
    assert ours.path.is_dir()
    assert third.path.is_dir()


def test_what_is_no_folder_of_ours_is_left_alone(folders: Path) -> None:
    file, other, link = folders / "toy-file", folders / "other", folders / "toy-link"
    file.touch()
    other.mkdir()
    link.symlink_to(other)
    TempFolder("toy-")
    assert file.exists()
    assert other.exists()
    assert link.exists()


def test_closing_removes_it_with_its_content(folders: Path) -> None:
    folder = TempFolder("toy-")
    (folder.path / "written").write_text("something")
    folder.close()
    folder.close()
    assert list(folders.iterdir()) == []
