"""What media may hold in memory, and who is refused beyond it."""

import pytest

from sglang_omni.engines.media_decoder.memory import MediaMemory
from sglang_omni.engines.runtime.shared_array import SharedArray
from sglang_omni.protocol.errors import Overloaded


def test_one_tenant_leaves_memory_to_another() -> None:
    memory = MediaMemory(100)
    with memory.hold("crowd", 50):
        with pytest.raises(Overloaded), memory.hold("crowd", 1):
            pass
        with memory.hold("other", 40):
            assert memory.held_bytes == 90
    assert memory.held_bytes == 0


def test_an_array_counts_until_its_memory_is_free() -> None:
    memory, array = MediaMemory(100), SharedArray()
    memory.track(None, array, 30)
    assert memory.held_bytes == 30
    del array
    assert memory.held_bytes == 0


def test_what_is_larger_than_a_share_is_served_alone() -> None:
    memory = MediaMemory(100)
    with memory.hold("one", 80), pytest.raises(Overloaded), memory.hold("one", 1):
        pass
