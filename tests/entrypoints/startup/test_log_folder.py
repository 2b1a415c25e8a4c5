"""Where engines' output goes, as far as this machine lets it."""

import os
import tempfile
from pathlib import Path

import pytest

from sglang_omni.entrypoints.startup.log_folder import open_log_folder
from sglang_omni.entrypoints.startup.preflight_checks import require_own_folder
from sglang_omni.protocol.errors import ConfigError

UNUSABLE = Path("/proc/nowhere")


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / "state"


def test_it_is_in_the_users_state_folder_and_the_users_alone(state: Path) -> None:
    folder = open_log_folder(None, "8000")
    assert folder == state / "sglang-omni" / "8000"
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_given_folder_is_taken_as_it_is_or_refused(state: Path, tmp_path: Path) -> None:
    assert open_log_folder(tmp_path / "mine", "8000") == tmp_path / "mine"
    with pytest.raises(ConfigError, match=r"log_folder /proc/nowhere: No such file"):
        open_log_folder(UNUSABLE, "8000")
    assert not state.exists()


def test_without_a_state_folder_it_is_a_temporary_one(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(UNUSABLE))
    assert open_log_folder(None, "8000") == tmp_path / f"sglang-omni-{os.geteuid()}" / "8000"


def test_where_nothing_can_be_written_the_output_is_shown_and_that_is_said(
    state: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(UNUSABLE))
    monkeypatch.setattr(tempfile, "tempdir", str(UNUSABLE))
    assert open_log_folder(None, "8000") is None
    assert "engines' output is shown here" in caplog.text
    assert "/proc/nowhere" in caplog.text


def test_a_folder_of_another_user_is_not_taken(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "theirs")
    with pytest.raises(ConfigError, match="belongs to another user"):
        require_own_folder(tmp_path / "link", "log_folder")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(ConfigError, match="belongs to another user"):
        require_own_folder(tmp_path / "theirs", "log_folder")
