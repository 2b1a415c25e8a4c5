"""The file of refusals: only its user's, kept through rotation, never waited for."""

import json
import os
import stat
import time
from pathlib import Path

import pytest

from sglang_omni.observability.audit_file import MAX_WAITING, AuditFileHandler, audit_file
from sglang_omni.observability.refusals import AUDIT_LOG, Refusal, RefusalLog
from sglang_omni.protocol.errors import StartupError

REFUSAL = Refusal(401, "invalid_api_key", "POST /v1/chat/completions", "id", None, "127.0.0.1")


def reasons(path: Path) -> list[str]:
    return [json.loads(line)["reason"] for line in path.read_text().splitlines()]


def test_lines_are_appended_to_a_file_that_only_its_user_may_read(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    for _ in range(2):
        with audit_file(path):
            RefusalLog(lambda reason: None).add(REFUSAL)
    assert reasons(path) == ["invalid_api_key"] * 2
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text().splitlines()[0])["owner"] == "none"


def test_a_file_that_was_moved_away_is_opened_anew(tmp_path: Path) -> None:
    path, moved = tmp_path / "audit.jsonl", tmp_path / "audit.jsonl.1"
    with audit_file(path):
        log = RefusalLog(lambda reason: None)
        log.add(REFUSAL)
        deadline = time.monotonic() + 5
        while not path.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        path.rename(moved)
        log.add(REFUSAL)
    assert reasons(path) == reasons(moved) == ["invalid_api_key"]


def test_a_disk_that_takes_nothing_holds_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AuditFileHandler, "emit", lambda self, record: time.sleep(0.5))
    started = time.monotonic()
    with audit_file(tmp_path / "audit.jsonl"):
        # Once the queue is full further lines are lost.
        for _ in range(3 * MAX_WAITING):
            AUDIT_LOG.info("{}")
        seconds = time.monotonic() - started
        monkeypatch.setattr(AuditFileHandler, "emit", lambda self, record: None)
    assert seconds < 2


def test_a_place_that_cannot_be_written_is_known_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="--audit-log"), audit_file(tmp_path / "no" / "audit"):
        pass


def test_other_logs_stay_where_they_are(tmp_path: Path) -> None:
    with audit_file(None):
        assert AUDIT_LOG.propagate
    with audit_file(tmp_path / "audit.jsonl"):
        assert not AUDIT_LOG.propagate
    assert AUDIT_LOG.propagate
    assert os.listdir(tmp_path) == ["audit.jsonl"]
