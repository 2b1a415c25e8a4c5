"""The worker's steps, with an encoder that only counts."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import Tensor

from sglang_omni.engines.encoder.contract import (
    AudioEncodeRequest,
    EncoderInfo,
    VisionEncodeRequest,
)
from sglang_omni.engines.encoder.worker import EncoderWorker, to_array
from sglang_omni.engines.runtime.shared_array import Layout, SharedArray
from sglang_omni.engines.runtime.worker import StepInput
from sglang_omni.models.encoder import Cost
from sglang_omni.protocol.errors import EngineFailed, InvalidRequest
from tests.engines.encoder.requests import clip, features, picture


class Doubling:
    """Encodes [n] as twice itself; a zero is refused when read, an empty array at once."""

    budget = 10.0

    def __init__(self) -> None:
        self.batches: list[list[int]] = []

    def estimate_cost(self, layout: Layout) -> Cost:
        if not layout.shape[0]:
            raise InvalidRequest("empty")
        return Cost(layout.shape[0], {"audio_clips": 1})

    def validate(self, array: np.ndarray) -> None:
        if (array == 0).any():
            raise InvalidRequest("zero")

    def encode(self, arrays: Sequence[np.ndarray]) -> list[Tensor]:
        self.batches.append([len(array) for array in arrays])
        return [torch.from_numpy(array * 2)[None] for array in arrays]

    def warm_up(self) -> None: ...

    def close(self) -> None: ...


@pytest.fixture
def encoder() -> Doubling:
    return Doubling()


@pytest.fixture
def worker(encoder: Doubling) -> EncoderWorker:
    return EncoderWorker({AudioEncodeRequest: encoder}, EncoderInfo(1, "float32"))


def of(length: int) -> AudioEncodeRequest:
    return clip(np.full(length, length, np.float32))


def test_a_step_encodes_what_fits_and_keeps_the_rest(
    worker: EncoderWorker, encoder: Doubling
) -> None:
    requests = {name: of(length) for name, length in zip("abcd", (4, 6, 12, 1), strict=True)}
    results = worker.step(StepInput(tuple(requests.items())))
    assert [name for name, _ in results] == ["a", "b"]
    assert worker.busy
    assert worker.counters()["waiting"] == 2
    results += worker.step(StepInput())
    results += worker.step(StepInput())
    assert [name for name, _ in results] == ["a", "b", "c", "d"]
    assert encoder.batches == [[4, 6], [12], [1]]
    for name, output in results:
        doubled = 2 * requests[name].layout.shape[0]
        assert (features(requests[name], output) == doubled).all()
    assert not worker.busy
    counters = worker.counters()
    assert (counters["audio_clips"], counters["batches"], counters["waiting"]) == (4, 3, 0)


def test_a_cancelled_request_is_never_encoded(worker: EncoderWorker, encoder: Doubling) -> None:
    worker.step(StepInput((("a", of(8)), ("b", of(9)), ("c", of(7)))))
    results = worker.step(StepInput(cancellations=("b", "gone")))
    assert [name for name, _ in results] == ["c"]
    assert encoder.batches == [[8], [7]]


def test_a_bad_request_fails_alone(worker: EncoderWorker, encoder: Doubling) -> None:
    short = of(3)
    broken = AudioEncodeRequest(short.samples, Layout((9,), "<f4"), short.rows)
    zeros, empty = clip(np.zeros(2, np.float32)), clip(np.zeros(0, np.float32))
    arrivals = (("a", of(1)), ("e", empty), ("z", zeros), ("b", of(2)))
    outcome = dict(worker.step(StepInput(arrivals)))
    outcome |= dict(worker.step(StepInput((("s", broken), ("p", picture(np.zeros((1, 2, 2, 3))))))))
    for name in "ezsp":
        assert isinstance(outcome[name], InvalidRequest), name
    assert encoder.batches == [[1, 2]]
    assert worker.counters()["request_errors"] == 4


def test_a_batch_of_bad_requests_is_no_batch(worker: EncoderWorker, encoder: Doubling) -> None:
    worker.step(StepInput((("z", clip(np.zeros(2, np.float32))),)))
    assert encoder.batches == []
    assert worker.counters()["batches"] == 0


def test_rows_that_are_gone_fail_their_request_alone(worker: EncoderWorker) -> None:
    gone, kept = of(1), of(2)
    gone.rows.path = "/proc/self/fd/nothing"
    outcome = dict(worker.step(StepInput((("gone", gone), ("kept", kept)))))
    assert isinstance(outcome["gone"], EngineFailed)
    assert (features(kept, outcome["kept"]) == 4).all()


def test_bfloat16_lies_as_its_bits() -> None:
    values = torch.tensor([[1.0, -2.5]], dtype=torch.bfloat16)
    array = to_array(values)
    memory = SharedArray()
    layout = memory.write(array)
    assert layout.dtype == "<u2"
    assert torch.equal(torch.from_numpy(memory.read(layout).copy()).view(torch.bfloat16), values)


def test_picture_requests_have_an_encoder_of_their_own(encoder: Doubling) -> None:
    other = Doubling()
    worker = EncoderWorker(
        {VisionEncodeRequest: other, AudioEncodeRequest: encoder}, EncoderInfo(1, "float32")
    )
    arrivals = (("p", picture(np.ones(10, np.float32))), ("c", of(10)))
    assert {name for name, _ in worker.step(StepInput(arrivals))} == {"p", "c"}
    assert encoder.batches == other.batches == [[10]]
