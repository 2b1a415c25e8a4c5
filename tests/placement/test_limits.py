"""Limits come from options and defaults, and smaller ones are taken in order."""

import pytest

from sglang_omni.config.tree import Config
from sglang_omni.placement.limits import (
    SMALLER_LIMITS,
    EngineLimits,
    iter_smaller_limits,
    read_limits,
)
from tests.placement.test_plan import config


def test_defaults_are_those_of_the_options() -> None:
    assert read_limits(Config()) == EngineLimits()


@pytest.mark.parametrize(
    ("options", "field", "value"),
    [
        ({"thinker__max_running_requests": "32"}, "running_requests", 32),
        ({"thinker__server_args": "{max_running_requests: 16}"}, "running_requests", 16),
        ({"thinker__server_args": "{chunked_prefill_size: 1024}"}, "prefill_tokens", 1024),
        ({"thinker__server_args": "{chunked_prefill_size: -1}"}, "prefill_tokens", 16_384),
        ({"thinker__deterministic": "true"}, "has_prefill_graphs", False),
        (
            {"thinker__server_args": "{cuda_graph_backend_prefill: disabled}"},
            "has_prefill_graphs",
            False,
        ),
        ({"image_encoder__max_patches": "100000"}, "image_patches", 100_000),
        ({"image_encoder__graphs": "false"}, "has_image_graphs", False),
        ({"image_encoder__tp_size": "2"}, "has_image_graphs", False),
        ({"media__image_max_pixels": "1000000"}, "image_pixels", 1_000_000),
        ({"audio_encoder__max_seconds": "400"}, "audio_seconds", 400),
        # A clip is not divided.
        ({"audio_encoder__max_seconds": "60"}, "audio_seconds", 300),
        ({"talker__slots": "16"}, "slots", 16),
        ({"talker__context": "512"}, "slot_positions", 512),
        ({"talker__fp8": "true"}, "has_fp8_talker", True),
        ({"image__max_batch_size": "8"}, "drawn_images", 8),
    ],
)
def test_every_limit_has_an_option(options: dict[str, str], field: str, value: object) -> None:
    changed = read_limits(config(**options))
    assert getattr(changed, field) == value
    assert {name for name in vars(changed) if getattr(changed, name) != getattr(BASE, name)} == {
        field
    }


BASE = EngineLimits()


def test_smaller_limits_add_up_in_order() -> None:
    steps = list(iter_smaller_limits(Config()))
    assert steps[0] == (Config(), {})
    for number, (reduced, taken) in enumerate(steps):
        assert taken == dict(SMALLER_LIMITS[:number])
        assert reduced.image_encoder == Config().image_encoder
    assert read_limits(steps[-1][0]).slots == 32


def test_options_that_are_set_are_not_touched() -> None:
    given = config(
        talker__slots="128",
        thinker__server_args="{chunked_prefill_size: 8192, page_size: 16}",
        thinker__max_running_requests="2048",
    )
    *_, (reduced, taken) = iter_smaller_limits(given)
    assert taken == {"audio_encoder.max_seconds": 300}
    assert (reduced.talker, reduced.thinker) == (given.talker, given.thinker)


def test_other_arguments_of_sglang_stay() -> None:
    *_, (reduced, _) = iter_smaller_limits(config(thinker__server_args="{page_size: 16}"))
    assert reduced.thinker.server_args == {"page_size": 16, "chunked_prefill_size": 2048}


def test_a_limit_that_would_not_be_smaller_is_not_taken() -> None:
    *_, (_, taken) = iter_smaller_limits(config(media__audio_seconds="900"))
    assert "audio_encoder.max_seconds" not in taken


def test_sglang_has_the_defaults_that_are_assumed() -> None:
    from sglang.srt.server_args import ServerArgs

    assert ServerArgs.__dataclass_fields__["max_prefill_tokens"].default == 16_384
