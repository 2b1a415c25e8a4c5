"""Files without a name, on disk or in memory, that other processes open through a path."""

import pickle
import tempfile
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from sglang_omni.engines.runtime.shared_descriptor import SharedDescriptor


@pytest.mark.parametrize(
    "create", [SharedDescriptor.create_file, SharedDescriptor.create_in_memory]
)
def test_what_is_written_is_read_through_a_pickle(create: Callable[..., SharedDescriptor]) -> None:
    owner = create(b"samples")
    other = pickle.loads(pickle.dumps(owner))
    with closing(other.open()) as file:
        assert file.read() == b"samples"
        file.write(b" and more")
    with closing(owner.open()) as file:
        assert file.read() == b"samples and more"


def test_a_file_in_memory_needs_no_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    with pytest.raises(OSError, match="No space"):
        SharedDescriptor.create_file(b"a")
    with closing(SharedDescriptor.create_in_memory(b"a").open()) as file:
        assert file.read() == b"a"
