"""Batches are first come, first served, within the budget; what exceeds it is split."""

import pytest

from sglang_omni.engines.encoder.batch import select_batch, split_steps


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
    assert "".join(select_batch(zip("abcd", costs, strict=False), budget=10)) == batch


def test_every_request_is_served_in_order_whatever_the_sizes() -> None:
    waiting = [(str(number), cost) for number, cost in enumerate((4, 30, 1, 9, 2, 50, 3))]
    served: list[str] = []
    while waiting:
        batch = select_batch(waiting, budget=10)
        assert batch == [name for name, _ in waiting[: len(batch)]]
        costs = [cost for _, cost in waiting[: len(batch)]]
        assert len(batch) == 1 or sum(costs) <= 10
        served += batch
        waiting = waiting[len(batch) :]
    assert served == [str(number) for number in range(7)]


@pytest.mark.parametrize(
    ("steps", "cost", "parts"),
    [
        (1, 7, [1]),
        (5, 10, [5]),  # All of the budget: not split.
        (6, 12, [3, 3]),
        (7, 14, [3, 4]),  # Not 5 and 2.
        (11, 22, [3, 4, 4]),
        (1, 40, [1]),  # One step cannot be split.
        (3, 33, [1, 1, 1]),
    ],
)
def test_what_exceeds_the_budget_is_split_into_few_even_parts(
    steps: int, cost: float, parts: list[int]
) -> None:
    split = split_steps(steps, cost, budget=10)
    assert [len(part) for part in split] == parts
    assert [step for part in split for step in part] == list(range(steps))
