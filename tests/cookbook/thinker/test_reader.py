"""Shards are read ahead, each once, as they appear."""

import time
from pathlib import Path

from cookbook.ming_mini.thinker.make import ShardMaker, make_shard
from cookbook.ming_mini.thinker.shards import Shard, ShardReader, write_shard
from cookbook.ming_mini.thinker.tasks import Kind

DEADLINE = 10.0


def test_a_shard_that_appears_later_is_read_once(workshop: ShardMaker, tmp_path: Path) -> None:
    shard = make_shard(workshop, "text", "reader", 3)
    write_shard(tmp_path, "text", "first", shard)
    reader = ShardReader(tmp_path)
    found: list[tuple[Kind, Shard]] = []
    for name in ("second", "third", "done"):
        end = time.monotonic() + DEADLINE
        wanted = len(found) + 1
        while len(found) < wanted and time.monotonic() < end:
            found += list(reader.ready(5))
            time.sleep(0.02)
        assert len(found) == wanted
        if name != "done":
            write_shard(tmp_path, "text", name, shard)
    assert {kind for kind, _ in found} == {"text"}
    assert all(len(read) == len(shard) for _, read in found)
