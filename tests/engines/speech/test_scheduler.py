"""The talker's policies."""

import random

import pytest

from sglang_omni.engines.speech.scheduler import (
    PatchLimits,
    assign_slots,
    compute_patch_limit,
    is_last_patch,
    select_steppable,
)
from sglang_omni.models.ming.speech.model import max_patches
from sglang_omni.protocol.errors import InvalidRequest

PATCH_SECONDS = 0.32
LIMITS = PatchLimits(min_patches=3, max_patches=1000, context=2048)


def estimate_max_patches(text: str) -> int:
    return max_patches(text, PATCH_SECONDS)


@pytest.mark.parametrize(("length", "patches"), [(0, 6), (5, 6), (6, 6), (20, 22), (100, 113)])
def test_duration_guard_grows_with_the_text_and_never_falls_below_two_seconds(
    length: int, patches: int
) -> None:
    """The reference's, for Chinese and for what is spelled out."""
    assert estimate_max_patches("字" * length) == patches
    assert (
        estimate_max_patches("A" * min(length, 45) + "!, " * max(0, (length - 45) // 3)) <= patches
    )


# Seconds that Ming-mini's slowest voice took, of four.
SPOKEN = {
    "The river runs slowly past the old stone mill.": 3.5,
    "One, two, three, four, five, six, seven, eight, nine, ten.": 5.8,
    "The HTML and CSS of the PDF.": 2.6,
    "Pneumonoultramicroscopicsilicovolcanoconiosis is a word.": 4.2,
    "How do you feel?": 1.6,
    "Call five hundred fifty-five - one thousand, two hundred thirty-four at ten : thirty AM.": 5.5,
}


@pytest.mark.parametrize(("text", "seconds"), SPOKEN.items())
def test_the_guard_leaves_normal_english_twice_its_time(text: str, seconds: float) -> None:
    reference = max(2.0, len(text) * 5818 / 16000)
    assert 2 * seconds <= estimate_max_patches(text) * PATCH_SECONDS <= reference


@pytest.mark.parametrize("text", ["b" * 400, "Ab" * 200, "qwrtpsdfg" * 40, "a" + "!" * 399])
def test_the_guard_bounds_what_is_no_language(text: str) -> None:
    assert estimate_max_patches(text) * PATCH_SECONDS <= 45 * 5818 / 16000


def test_the_guard_of_every_text_is_at_most_the_references() -> None:
    rng = random.Random(2)
    signs = "aAbzß é,.!? \n0字あ한ท😀_-"
    for _ in range(300):
        text = "".join(rng.choice(signs) for _ in range(rng.randrange(400)))
        assert estimate_max_patches(text) <= max(6, int(len(text) * 5818 / 16000 / PATCH_SECONDS))


def test_the_stop_rule_fires_only_after_the_minimum() -> None:
    assert [is_last_patch(patch, 0.9, 100, LIMITS) for patch in range(6)] == [False] * 4 + [
        True
    ] * 2
    assert not is_last_patch(50, 0.5, 100, LIMITS)


def test_the_patch_at_the_limit_is_last_whatever_the_stop_head_says() -> None:
    assert [is_last_patch(patch, 0.0, 3, LIMITS) for patch in range(3)] == [False, False, True]


def test_the_tightest_limit_holds() -> None:
    assert compute_patch_limit(estimate_max_patches("字" * 100), None, 200, LIMITS) == 113
    assert compute_patch_limit(estimate_max_patches("字" * 100), 40, 200, LIMITS) == 40
    assert compute_patch_limit(estimate_max_patches("字" * 100), 500, 200, LIMITS) == 500
    assert compute_patch_limit(estimate_max_patches("字" * 100), 5000, 200, LIMITS) == 1000
    assert compute_patch_limit(estimate_max_patches("字" * 100), None, 2048 - 20, LIMITS) == 20


def test_a_prompt_that_leaves_no_room_for_speech_is_refused() -> None:
    assert compute_patch_limit(estimate_max_patches("字" * 100), None, 2048 - 5, LIMITS) == 5
    with pytest.raises(InvalidRequest, match="2044 of 2048 positions"):
        compute_patch_limit(estimate_max_patches("字" * 100), None, 2044, LIMITS)
    with pytest.raises(InvalidRequest):
        compute_patch_limit(estimate_max_patches("a"), 1, 2048, LIMITS)


def test_slots_go_to_the_requests_that_waited_longest() -> None:
    assert assign_slots(["a", "b", "c"], [4, 7]) == [("a", 4), ("b", 7)]
    assert assign_slots(["a"], []) == []


def test_stalled_requests_are_left_out_of_the_step() -> None:
    running = {"a": 0, "b": 1, "c": 2}
    assert select_steppable(running, frozenset({"b", "gone"})) == ["a", "c"]
