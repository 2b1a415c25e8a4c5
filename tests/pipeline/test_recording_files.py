"""Where recordings are kept: small ones in memory, so that a full disk does not matter."""

import tempfile
from contextlib import closing
from typing import Any

import pytest

from sglang_omni.pipeline.recording import SMALL_FILE_BYTES, _store
from sglang_omni.protocol.errors import EngineFailed


def test_a_full_disk_matters_to_large_recordings_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    with closing(_store(bytes(SMALL_FILE_BYTES)).open()) as file:
        assert len(file.read()) == SMALL_FILE_BYTES
    with pytest.raises(EngineFailed, match="No space left"):
        _store(bytes(SMALL_FILE_BYTES + 1))
