"""Feature rows between the encoders' memory and SGLang's schedulers."""

import gc
import pickle

import numpy as np
import pytest
import torch

from sglang_omni.engines.runtime.shared_array import SharedArray
from sglang_omni.engines.thinker.contract import Features
from sglang_omni.engines.thinker.shared_features import SharedFeatureRef


def features(values: np.ndarray) -> tuple[SharedArray, Features]:
    """Rows as an encoder left them, and what the thinker's process is told of them."""
    memory = SharedArray()
    entry = Features("image", memory, memory.write(values), ((0, len(values) - 1),), 7)
    return memory, pickle.loads(pickle.dumps(entry))


def test_rows_arrive_as_a_tensor_of_the_same_memory() -> None:
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    memory, told = features(values)
    lent = SharedFeatureRef(told)
    rows = pickle.loads(pickle.dumps(lent))
    torch.testing.assert_close(rows, torch.from_numpy(values))
    memory.read(told.layout)[1, 2] = -1.0
    assert rows[1, 2] == -1.0


def test_bits_of_bfloat16_arrive_as_bfloat16() -> None:
    values = torch.tensor([[1.5, -2.0]], dtype=torch.bfloat16)
    _memory, told = features(values.view(torch.uint16).numpy())
    lent = SharedFeatureRef(told)
    torch.testing.assert_close(pickle.loads(pickle.dumps(lent)), values)


def test_a_reference_is_small() -> None:
    _memory, told = features(np.zeros((1024, 4096), np.float32))
    assert len(pickle.dumps(SharedFeatureRef(told))) < 1000


def test_rows_outlive_their_maker_for_as_long_as_they_are_lent() -> None:
    memory, told = features(np.ones((2, 3), np.float32))
    lent = SharedFeatureRef(told)
    del memory
    gc.collect()
    reference = pickle.dumps(lent)
    assert pickle.loads(reference).sum() == 6
    del lent
    gc.collect()
    with pytest.raises(FileNotFoundError):
        pickle.loads(reference)


def test_rows_whose_maker_is_gone_cannot_be_lent() -> None:
    memory, told = features(np.ones((2, 3), np.float32))
    del memory
    gc.collect()
    with pytest.raises(FileNotFoundError):
        SharedFeatureRef(told)
