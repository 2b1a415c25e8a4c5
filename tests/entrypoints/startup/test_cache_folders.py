"""Where engines keep caches when the user has no home that can be written."""

import os
import pwd
import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from sglang_omni.entrypoints.startup.cache_folders import prepare_home
from sglang_omni.protocol.errors import StartupError


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"sglang-omni-{os.geteuid()}" / "home"


def test_a_home_that_can_be_written_stays(place: Path, tmp_path: Path) -> None:
    given = {"HOME": str(tmp_path), "USER": "me", "XDG_CACHE_HOME": str(tmp_path / "caches")}
    environment = dict(given)
    prepare_home(environment)
    assert environment == given
    assert not place.exists()


@pytest.mark.parametrize("home", ["/nonexistent", "/proc", ""])
def test_engines_get_a_private_home_where_there_is_none_and_that_is_said(
    home: str, place: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if not home:
        monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    environment = {"HOME": home, "USER": "me", "XDG_CACHE_HOME": "/proc/caches"}
    prepare_home(environment)
    assert environment == {"HOME": str(place), "USER": "me"}
    assert place.stat().st_mode & 0o777 == 0o700
    (record,) = caplog.records
    assert f"engines keep their caches in {place}" in record.getMessage()


def test_a_cache_folder_that_cannot_be_written_counts_too(place: Path, tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "USER": "me", "XDG_CACHE_HOME": "/proc"}
    prepare_home(environment)
    assert environment["HOME"] == str(place)


def test_a_user_without_an_entry_gets_a_name(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", missing)
    environment = {"HOME": str(tmp_path)}
    prepare_home(environment)
    assert environment["USER"] == str(os.geteuid())


def test_a_full_temporary_folder_ends_the_start_with_need_and_remedy(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=1 << 20))
    with pytest.raises(StartupError, match=r"1\.0 MB free and the engines need 8 MB.*TMPDIR"):
        prepare_home({"HOME": "/"})


def test_without_any_temporary_folder_the_start_ends_with_a_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nowhere() -> str:
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", nowhere)
    with pytest.raises(StartupError, match=r"mount one of 8 MB.*TMPDIR"):
        prepare_home({"HOME": "/"})
