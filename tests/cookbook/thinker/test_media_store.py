"""What is stored for a training stays as it was while more is added."""

import numpy as np
import pytest
import torch

from cookbook.ming_mini.thinker import media_store
from cookbook.ming_mini.thinker.media_store import GrowingTensor


@pytest.mark.parametrize("large_bytes", [0, 100, 1 << 30])
def test_rows_are_kept_while_the_memory_grows(
    monkeypatch: pytest.MonkeyPatch, large_bytes: int
) -> None:
    monkeypatch.setattr(media_store, "LARGE_BYTES", large_bytes)
    stored, added = GrowingTensor(torch.device("cpu")), np.empty((0, 4), np.int16)
    for count in (1, 3, 2, 40, 7):
        rows = np.random.default_rng(count).integers(0, 99, (count, 4), dtype=np.int16)
        assert stored.add(rows) == len(added)
        added = np.concatenate((added, rows))
    assert torch.equal(stored.rows, torch.from_numpy(added))
    assert len(stored._rows) <= 2 * stored.length
