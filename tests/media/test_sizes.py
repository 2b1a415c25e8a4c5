"""Sizes, samplings and times equal the reference's tables."""

from dataclasses import replace
from typing import Any

import pytest

from sglang_omni.media.sizes import (
    frame_size,
    listed_budget,
    pair_seconds,
    sample_frames,
    smart_resize,
)
from sglang_omni.protocol.errors import InvalidRequest
from tests.media.files import RULES
from tests.testing.golden import load_case

TABLES = load_case("vision/resize_rules").info


def name(row: dict[str, Any]) -> str:
    return f"{row['h']}x{row['w']}"


@pytest.mark.parametrize("row", TABLES["sizes"], ids=name)
def test_sizes_equal_the_table(row: dict[str, Any]) -> None:
    assert smart_resize(row["h"], row["w"], RULES.image) == tuple(row["image_hw"])
    for frames, size in row["video_hw_by_frames"].items():
        assert frame_size(row["h"], row["w"], int(frames), RULES.video) == tuple(size)


@pytest.mark.parametrize(
    "row", TABLES["frame_sampling"], ids=lambda row: f"{row['src_frames']}@{row['src_fps']}"
)
def test_samplings_equal_the_table(row: dict[str, Any]) -> None:
    indices, fps = sample_frames(row["src_frames"], row["src_fps"], RULES.video)
    expected = row["indices"]
    if isinstance(expected, dict):
        assert list(indices[:8]) == expected["first"]
        assert list(indices[-8:]) == expected["last"]
    else:
        assert list(indices) == expected
    assert len(indices) == row["n"]
    assert fps == pytest.approx(row["sampled_fps"], rel=1e-12)


def test_a_frame_stays_within_its_own_bound() -> None:
    rules = replace(RULES.video, max_frame_pixels=1 << 20)
    assert frame_size(2160, 3840, 2, rules) == (768, 1344)
    assert frame_size(2160, 3840, 170, rules) == frame_size(2160, 3840, 170, RULES.video)


def test_resizing_what_was_resized_changes_nothing() -> None:
    for height in range(10, 2000, 37):
        for width in range(10, 2000, 41):
            once = smart_resize(height, width, RULES.image)
            assert smart_resize(*once, RULES.image) == once
            assert RULES.image.min_pixels <= once[0] * once[1] <= RULES.image.max_pixels


@pytest.mark.parametrize(("height", "width"), [(1, 201), (2010, 10)])
def test_a_thin_strip_is_refused(height: int, width: int) -> None:
    with pytest.raises(InvalidRequest, match="more than 200 times as long as wide"):
        smart_resize(height, width, RULES.image)
    with pytest.raises(InvalidRequest, match="more than 200 times as long as wide"):
        frame_size(height, width, 4, RULES.video)


def test_a_picture_two_hundred_times_as_long_as_wide_is_taken() -> None:
    # 2000 / 32 lies in the middle; Python rounds to the even 62.
    assert smart_resize(10, 2000, RULES.image) == (32, 62 * 32)


def test_nothing_has_no_size() -> None:
    with pytest.raises(InvalidRequest, match="no area"):
        smart_resize(0, 10, RULES.image)


def test_the_last_frame_of_an_odd_count_is_its_own_partner() -> None:
    assert pair_seconds(5, 2.0) == (0.25, 1.25, 2.0)
    assert pair_seconds(6, 2.0) == (0.25, 1.25, 2.25)
    assert pair_seconds(1, 30.0) == (0.0,)


def test_a_list_is_counted_by_even_numbers_up_to_256() -> None:
    assert [listed_budget(n) for n in (2, 3, 4, 5, 256, 257, 999)] == [2, 2, 4, 4, 256, 256, 256]
    with pytest.raises(InvalidRequest, match="at least two"):
        listed_budget(1)
