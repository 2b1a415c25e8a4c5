"""Whole requests and the parts of split ones take turns."""

import numpy as np
import torch

from sglang_omni.engines.encoder.queue import PassQueue
from sglang_omni.models.encoder import Cost
from tests.engines.encoder.requests import picture


def add(queue: PassQueue, request_id: str, steps: int, cost: float) -> None:
    """Add a request of `steps` steps that cost `cost` together."""
    queue.add(request_id, picture(np.zeros((steps, 1), np.uint8)), Cost(cost, {}, steps))


def run_pass(queue: PassQueue) -> str:
    """Have the next pass done; return the names of those that took part in it."""
    taken = queue.take()
    for request_id, waiting in taken.items():
        rest = waiting.with_features(torch.zeros(1, 1))
        if rest.parts:
            queue.put_back(request_id, rest)
    return "".join(taken)


def test_split_requests_take_turns_with_each_other() -> None:
    queue = PassQueue(budget=10)
    add(queue, "a", steps=3, cost=30)
    add(queue, "b", steps=2, cost=20)
    assert [run_pass(queue) for _ in range(5)] == ["a", "b", "a", "b", "a"]
    assert len(queue) == 0
    assert queue.take() == {}


def test_whole_requests_wait_for_one_part_however_many_are_split() -> None:
    queue = PassQueue(budget=10)
    for name in "abc":
        add(queue, name, steps=5, cost=50)
    assert run_pass(queue) == "a"
    add(queue, "x", steps=1, cost=4)
    add(queue, "y", steps=1, cost=4)
    assert run_pass(queue) == "xy"
    assert run_pass(queue) == "b"


def test_a_stream_of_whole_requests_does_not_keep_a_split_one_waiting() -> None:
    queue = PassQueue(budget=10)
    add(queue, "v", steps=3, cost=30)
    passes = ""
    for _ in range(6):
        add(queue, "x", steps=1, cost=10)
        passes += run_pass(queue)
    assert passes == "vxvxvx"


def test_a_request_is_cancelled_before_and_between_its_parts() -> None:
    queue = PassQueue(budget=10)
    add(queue, "a", steps=3, cost=30)
    add(queue, "b", steps=3, cost=30)
    assert run_pass(queue) == "a"
    queue.cancel("a")
    queue.cancel("b")
    queue.cancel("gone")
    assert len(queue) == 0
    assert run_pass(queue) == ""
