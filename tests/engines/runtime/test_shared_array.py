"""Arrays between processes: filled by one, read by another, gone with their maker."""

import gc
import multiprocessing
import os
import pickle
from contextlib import suppress

import numpy as np
import pytest

from sglang_omni.engines.runtime.shared_array import Layout, SharedArray


def _fill(blob: bytes, values: np.ndarray) -> Layout:
    return pickle.loads(blob).write(values)


def test_another_process_fills_what_this_one_reads() -> None:
    shared, values = SharedArray(), np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        layout = pool.apply(_fill, (pickle.dumps(shared), values))
    np.testing.assert_array_equal(shared.read(layout), values)


def test_an_empty_array_has_a_shape_too() -> None:
    shared = SharedArray()
    layout = shared.write(np.empty((0, 5), np.float32))
    assert shared.read(layout).shape == (0, 5)


def _open_to(memory: os.stat_result) -> list[int]:
    """Descriptors of this process that refer to a file."""
    found = []
    for number in map(int, os.listdir("/proc/self/fd")):
        # The list's own descriptor is closed by now.
        with suppress(OSError):
            if os.path.samestat(os.fstat(number), memory):
                found.append(number)
    return found


def test_the_mapped_array_outlives_its_handle_and_the_handle_its_descriptor() -> None:
    shared = SharedArray()
    layout = shared.write(np.ones(1000, np.float32))
    array, memory = shared.read(layout), os.fstat(_descriptor(shared))
    # The handle's own, and one that the mapping keeps for as long as there is the array.
    assert len(_open_to(memory)) == 2
    del shared
    gc.collect()
    assert array.sum() == 1000
    # The handle's number may be another file's by now: other threads open files, too.
    assert len(_open_to(memory)) == 1
    del array
    assert not _open_to(memory)


def test_reading_more_than_was_written_is_an_error() -> None:
    shared = SharedArray()
    shared.write(np.ones(10, np.float32))
    with pytest.raises(ValueError, match="greater than file size"):
        shared.read(Layout((1000,), "<f4"))


def test_a_handle_of_a_maker_that_is_gone_is_an_error() -> None:
    shared = SharedArray()
    copy = pickle.loads(pickle.dumps(shared))
    layout = shared.write(np.ones(10, np.float32))
    del shared
    gc.collect()
    # Another thread of this process may have opened anything under the number meanwhile.
    with pytest.raises(OSError, match=copy.path):
        copy.read(layout)


def test_a_handle_never_reaches_the_memory_that_took_its_descriptors_number() -> None:
    shared, other = SharedArray(), SharedArray()
    stale = pickle.loads(pickle.dumps(shared))
    layout = shared.write(np.ones(10, np.float32))
    other.write(np.zeros(10, np.float32))
    # In one call: between a close and an open, another thread could take the number.
    os.dup2(_descriptor(other), _descriptor(shared))
    with pytest.raises(OSError, match="another file"):
        stale.read(layout)
    with pytest.raises(OSError, match="another file"):
        stale.write(np.ones(10, np.float32))
    assert other.read(layout).sum() == 0


def _descriptor(shared: SharedArray) -> int:
    return int(shared.path.rsplit("/", 1)[1])
