"""Sizes and quoted texts, compared with what the released model makes of them."""

import pytest

from sglang_omni.models.ming.image.glyph_text import select_glyph_text
from sglang_omni.models.ming.image.sizes import (
    BUCKETS,
    compute_default_size,
    compute_output_size,
    plan_sizes,
    select_bucket,
)
from sglang_omni.protocol.errors import InvalidRequest
from tests.testing.golden import load_case

RENDERED = (
    "<role>SYSTEM</role>你是一个友好的AI助手。\n\ndetailed thinking off<|role_end|>"
    "<role>HUMAN</role>{}<|role_end|><role>ASSISTANT</role>"
)
# The released code also takes a missing class and a flag.
FLAGS = {None: 512, False: 512, True: 1024}


def resolution_of(item: dict[str, object]) -> int:
    value = item["highres"]
    return FLAGS[value] if value is None or isinstance(value, bool) else int(str(value))


def test_buckets_and_output_sizes_are_those_of_the_released_model() -> None:
    for item in load_case("image/prompt/sizes").info["items"]:
        size = item["height"], item["width"]
        bucket = select_bucket(size, resolution_of(item))
        assert list(bucket) == item["bucket_hw"], item
        assert list(compute_output_size(size, bucket)) == item["output_hw"], item


def test_an_aspect_ratio_alone_gives_a_size() -> None:
    for item in load_case("image/prompt/sizes").info["default_hw"]:
        size = compute_default_size(item["aspect_w_over_h"] or 1.0)
        assert list(select_bucket(size, resolution_of(item))) == item["bucket_hw"], item


@pytest.mark.parametrize("resolution", BUCKETS)
def test_a_bucket_is_its_own_size(resolution: int) -> None:
    for bucket in BUCKETS[resolution].values():
        plan = plan_sizes(bucket, resolution, (resolution,))
        assert plan.bucket == plan.output == bucket
        assert plan.latent == (bucket[0] // 8, bucket[1] // 8)


@pytest.mark.parametrize("size", [(100, 1000), (1000, 100), (0, 512), (512, -1)])
def test_a_size_too_narrow_is_refused_by_name(size: tuple[int, int]) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        plan_sizes(size, 1024)
    assert refusal.value.param == "size"


def test_quoted_text_is_selected_as_in_the_released_model() -> None:
    case = load_case("image/prompt/quoted_text").info
    for item in case["items"]:
        assert select_glyph_text(item["text"]) == item["plain"], item
        assert select_glyph_text(RENDERED.format(item["text"])) == item["rendered"], item
    assert select_glyph_text(case["multi_turn"]["text"]) == case["multi_turn"]["out"]
