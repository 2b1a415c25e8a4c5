"""Shared memory travels with its message, and comes back filled."""

import pickle
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from sglang_omni.engines.remote.packed_message import (
    PART_BYTES,
    count_bytes,
    iter_parts,
    pack,
    unpack,
)
from sglang_omni.engines.remote.request_memory import ArrivingMemory, RequestMemory
from sglang_omni.engines.runtime.shared_array import SharedArray
from sglang_omni.engines.runtime.shared_descriptor import SharedDescriptor
from sglang_omni.engines.runtime.transport import encode
from tests.engines.remote.wire import through_a_socket


@dataclass(frozen=True)
class Work:
    """A request with input, a destination, and an array of its own."""

    pixels: SharedArray
    rows: SharedArray
    samples: np.ndarray


def example() -> tuple[Work, np.ndarray]:
    pixels = np.arange(60_000, dtype=np.uint8).reshape(100, 600)
    memory = SharedArray()
    memory.write(pixels)
    return Work(memory, SharedArray(), np.arange(5000, dtype=np.float32)), pixels


def send_memory(shared: Sequence[SharedDescriptor]) -> tuple[SharedArray, ...]:
    """Return what arrives of shared memory at another machine."""
    arriving = ArrivingMemory()
    for index, one in enumerate(shared):
        for part in iter_parts(index, one):
            arriving.write(through_a_socket(part))
    return arriving.take(len(shared))


def test_content_arrives_in_memory_of_the_receiver() -> None:
    work, pixels = example()
    packed, shared = pack(work)
    assert shared == (work.pixels, work.rows)
    mine = send_memory(shared)
    received = unpack(through_a_socket(packed), mine)
    assert received.pixels is mine[0]
    assert received.rows is mine[1]
    assert received.pixels.path != work.pixels.path
    layout = work.pixels.write(pixels)
    assert np.array_equal(received.pixels.read(layout), pixels)
    assert np.array_equal(received.samples, work.samples)
    with pytest.raises(ValueError, match="mmap"):
        received.rows.read(layout)


def test_memory_whose_owner_is_gone_arrives_empty() -> None:
    work, _ = example()
    orphan = pickle.loads(pickle.dumps(work.pixels))
    del work
    _, shared = pack(orphan)
    assert list(iter_parts(0, shared[0])) == []
    assert count_bytes(send_memory(shared)[0]) == 0


def test_large_memory_is_not_copied_into_the_pickle() -> None:
    packed, _ = pack(example()[0])
    body, *views = encode(packed)
    assert len(body) < 2000
    assert [len(view) for view in views] == [20_000]


def test_large_memory_is_sent_in_parts() -> None:
    memory = SharedArray()
    content = np.random.default_rng(1).integers(0, 255, 2 * PART_BYTES + 5, np.uint8)
    layout = memory.write(content)
    assert [part.data.size for part in iter_parts(0, memory)] == [PART_BYTES, PART_BYTES, 5]
    (received,) = send_memory([memory])
    assert np.array_equal(received.read(layout), content)


def test_what_the_engine_writes_comes_back_once() -> None:
    work, _ = example()
    here, there = RequestMemory(), RequestMemory()
    _, shared = pack(work)
    here.hold("a", shared)
    mine = send_memory(shared)
    there.hold("a", mine)
    assert list(there.iter_new_parts("a")) == []
    rows = np.linspace(0, 1, 3000, dtype=np.float32).reshape(30, 100)
    layout = mine[1].write(rows)
    (part,) = there.iter_new_parts("a")
    assert (part.index, part.offset) == (1, 0)
    here.write("a", part)
    assert np.array_equal(work.rows.read(layout), rows)
    assert list(there.iter_new_parts("a")) == []


def test_a_file_that_grows_is_sent_as_it_grows() -> None:
    sink, received = SharedArray(), SharedArray()
    here, there = RequestMemory(), RequestMemory()
    here.hold("a", (sink,))
    there.hold("a", (received,))
    for added in (b"one", b"two", b""):
        with received.open() as file:
            file.seek(0, 2)
            file.write(added)
        for part in there.iter_new_parts("a"):
            assert part.data.tobytes() == added
            here.write("a", part)
    with sink.open() as file:
        assert file.read() == b"onetwo"


def test_the_memory_of_a_request_that_ended_is_dropped() -> None:
    sink, received = SharedArray(), SharedArray()
    here, there = RequestMemory(), RequestMemory()
    here.hold("a", (sink,))
    there.hold("a", (received,))
    received.write(np.ones(3))
    (part,) = there.iter_new_parts("a")
    here.release("a")
    here.write("a", part)
    assert len(here) == 0
    assert list(here.iter_new_parts("a")) == []
    assert count_bytes(sink) == 0


def test_a_message_without_shared_memory_has_none() -> None:
    packed, shared = pack(("text", 1))
    assert (packed.num_shared, shared) == (0, ())
    assert unpack(packed) == ("text", 1)
