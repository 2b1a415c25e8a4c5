"""Batches are first come, first served, within the budget."""

import pytest

from sglang_omni.encoder.batch import next_batch


@pytest.mark.parametrize(
    ("costs", "batch"),
    [
        ([], ""),
        ([3, 3, 4], "abc"),
        ([3, 3, 5, 1], "ab"),
        ([11, 1], "a"),
        ([1, 11], "a"),
        ([10, 0.5], "a"),
    ],
)
def test_a_batch_is_the_oldest_requests_that_fit(costs: list[float], batch: str) -> None:
    assert "".join(next_batch(zip("abcd", costs, strict=False), budget=10)) == batch


def test_every_request_is_served_in_order_whatever_the_sizes() -> None:
    waiting = [(str(number), cost) for number, cost in enumerate((4, 30, 1, 9, 2, 50, 3))]
    served: list[str] = []
    while waiting:
        batch = next_batch(waiting, budget=10)
        assert batch == [name for name, _ in waiting[: len(batch)]]
        costs = [cost for _, cost in waiting[: len(batch)]]
        assert len(batch) == 1 or sum(costs) <= 10
        served += batch
        waiting = waiting[len(batch) :]
    assert served == [str(number) for number in range(7)]
