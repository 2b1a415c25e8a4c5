"""A count that another process reads while its owner changes it."""

import multiprocessing
import pickle
from multiprocessing.connection import Connection

from sglang_omni.engines.runtime.shared_count import SharedCount


def _read_when_told(blob: bytes, orders: Connection) -> None:
    count: SharedCount = pickle.loads(blob)
    while orders.recv():
        orders.send(count.value)


def test_another_process_reads_each_change() -> None:
    count = SharedCount()
    assert count.value == 0
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    reader = context.Process(target=_read_when_told, args=(pickle.dumps(count), theirs))
    reader.start()
    seen = []
    for change in (0, 2, -1, 1 << 40):
        count.add(change)
        ours.send(True)
        seen.append(ours.recv())
    ours.send(False)
    reader.join(30)
    assert seen == [0, 2, 1, 1 + (1 << 40)]
    assert reader.exitcode == 0
