"""The talker's policies."""

import pytest

from sglang_omni.errors import InvalidRequest
from sglang_omni.talker.scheduler import (
    Limits,
    assign,
    duration_guard,
    is_last,
    patch_limit,
    steppable,
)

LIMITS = Limits(min_patches=3, max_patches=1000, context=2048)


@pytest.mark.parametrize(("length", "patches"), [(0, 6), (5, 6), (6, 6), (20, 22), (100, 113)])
def test_duration_guard_grows_with_the_text_and_never_falls_below_two_seconds(length, patches):
    assert duration_guard("a" * length) == patches


def test_the_stop_rule_fires_only_after_the_minimum():
    assert [is_last(patch, 0.9, 100, LIMITS) for patch in range(6)] == [False] * 4 + [True] * 2
    assert not is_last(50, 0.5, 100, LIMITS)


def test_the_patch_at_the_limit_is_last_whatever_the_stop_head_says():
    assert [is_last(patch, 0.0, 3, LIMITS) for patch in range(3)] == [False, False, True]


def test_the_tightest_limit_holds():
    assert patch_limit("a" * 100, None, 200, LIMITS) == 113
    assert patch_limit("a" * 100, 40, 200, LIMITS) == 40
    assert patch_limit("a" * 100, 500, 200, LIMITS) == 500
    assert patch_limit("a" * 100, 5000, 200, LIMITS) == 1000
    assert patch_limit("a" * 100, None, 2048 - 20, LIMITS) == 20


def test_a_prompt_that_leaves_no_room_for_speech_is_refused():
    assert patch_limit("a" * 100, None, 2048 - 5, LIMITS) == 5
    with pytest.raises(InvalidRequest, match="2044 of 2048 positions"):
        patch_limit("a" * 100, None, 2044, LIMITS)
    with pytest.raises(InvalidRequest):
        patch_limit("a", 1, 2048, LIMITS)


def test_slots_go_to_the_requests_that_waited_longest():
    assert assign(["a", "b", "c"], [4, 7]) == [("a", 4), ("b", 7)]
    assert assign(["a"], []) == []


def test_stalled_requests_are_left_out_of_the_step():
    running = {"a": 0, "b": 1, "c": 2}
    assert steppable(running, frozenset({"b", "gone"})) == ["a", "c"]
