"""Weights are in the page cache before engines map them, where memory is large enough."""

import ctypes
import mmap
import os
from pathlib import Path

import pytest

from sglang_omni.system import page_cache
from sglang_omni.system.page_cache import (
    PROCESS_BYTES,
    prefetch_files,
    read_available_bytes,
    read_into_page_cache,
)

PAGES = 512
SIZE = PAGES * mmap.PAGESIZE


def write_uncached(path: Path) -> Path:
    """Write a file of which no page is in the page cache; skip where files are memory."""
    with path.open("wb") as file:
        file.write(os.urandom(SIZE))
        file.flush()
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if count_cached_pages(path):
        pytest.skip("the file system keeps every page in memory")
    return path


def count_cached_pages(path: Path) -> int:
    """Return how many pages of a file are in memory, without reading it."""
    with path.open("r+b") as file, mmap.mmap(file.fileno(), SIZE) as mapped:
        address = ctypes.c_char.from_buffer(mapped)
        states = (ctypes.c_ubyte * PAGES)()
        libc = ctypes.CDLL(None, use_errno=True)
        failed = libc.mincore(ctypes.byref(address), ctypes.c_size_t(SIZE), states)
        del address
    assert not failed
    return sum(state & 1 for state in states)


def test_files_are_in_memory_before_anybody_maps_them(tmp_path: Path) -> None:
    files = [write_uncached(tmp_path / f"{number}.safetensors") for number in range(6)]
    for thread in prefetch_files(files, PROCESS_BYTES + 6 * SIZE):
        thread.join()
    assert [count_cached_pages(file) for file in files] == [PAGES] * 6


def test_files_that_memory_cannot_hold_are_left_where_they_are(tmp_path: Path) -> None:
    file = write_uncached(tmp_path / "model.safetensors")
    assert prefetch_files([file], PROCESS_BYTES + SIZE - 1) == []
    assert count_cached_pages(file) == 0


def test_a_file_in_several_chunks_is_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_cache, "CHUNK_BYTES", SIZE // 5)
    file = write_uncached(tmp_path / "model.safetensors")
    read_into_page_cache(file)
    assert count_cached_pages(file) == PAGES


def test_a_file_that_cannot_be_read_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(page_cache, "READERS", 1)
    broken, whole = tmp_path / "broken", write_uncached(tmp_path / "whole")
    broken.mkdir()
    for thread in prefetch_files([broken, whole], PROCESS_BYTES + 2 * SIZE):
        thread.join()
    assert count_cached_pages(whole) == PAGES
    assert f"{broken} is not read ahead" in caplog.text


def test_available_memory_is_that_of_the_machine_within_a_limit(tmp_path: Path) -> None:
    info, limit, none = tmp_path / "meminfo", tmp_path / "memory.max", tmp_path / "nothing"
    info.write_text("MemTotal: 16384 kB\nMemAvailable: 8192 kB\n")
    assert read_available_bytes(info, [none]) == 8192 * 1024
    limit.write_text("4194304\n")
    assert read_available_bytes(info, [none, limit]) == 4 << 20
    limit.write_text("max\n")
    assert read_available_bytes(info, [limit]) == 8192 * 1024
    assert read_available_bytes(none, [limit]) == 0
    assert read_available_bytes() > 0
