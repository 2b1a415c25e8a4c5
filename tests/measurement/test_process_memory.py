"""The memory of a process counts what it has started, and shared pages once."""

import os
import signal
import subprocess
import sys

import psutil
import pytest

from measurement.process_memory import measure_tree_bytes

SIZE = 64 << 20


def test_shared_pages_count_once_and_those_of_children_are_counted() -> None:
    code = (
        "import mmap, os, signal\n"
        f"shared = mmap.mmap(-1, {SIZE}); shared.write(b'x' * {SIZE})\n"
        "if os.fork() == 0:\n"
        "    shared.seek(0); shared.read()\n"
        f"    own = bytearray(b'y' * {SIZE}); print(flush=True)\n"
        "signal.pause()\n"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        measured = measure_tree_bytes(process.pid)
        os.killpg(process.pid, signal.SIGKILL)
    assert 2 * SIZE < measured < 2.7 * SIZE


def test_a_process_that_is_gone_has_no_memory() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    with pytest.raises(psutil.NoSuchProcess):
        measure_tree_bytes(process.pid)
