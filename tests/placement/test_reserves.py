"""Reserves follow from the limits: each grows with those that decide it, and with no other."""

from dataclasses import replace
from typing import Any

import pytest

from sglang_omni.placement.limits import EngineLimits
from sglang_omni.placement.reserves import (
    ALLOCATOR_SHARE,
    CONTEXT,
    GIB,
    Reserves,
    compute_reserves,
)
from tests.placement.released import GB, RELEASED

BASE = EngineLimits()
MEMORY = RELEASED.working


def grown(**limits: Any) -> dict[str, int]:
    """Return the reserves that other limits change, and by how much."""
    usual, other = (compute_reserves(RELEASED, one) for one in (BASE, replace(BASE, **limits)))
    changes = {name: getattr(other, name) - getattr(usual, name) for name in vars(usual)}
    return {name: change for name, change in changes.items() if change}


def test_the_reserves_of_the_usual_limits() -> None:
    # In GB; those that were fixed before were 7.5, 8.6, 6.4, 3.2 and 6.4.
    reserves = compute_reserves(RELEASED, BASE)
    in_gb = {name: round(value / GB, 1) for name, value in vars(reserves).items()}
    assert in_gb == {
        "thinker": 15.4,
        "talker": 6.5,
        "image_encoder": 3.9,
        "audio_encoder": 2.1,
        "image": 6.4,
    }
    assert Reserves(**vars(reserves)).image == 6 * GIB


def test_requests_of_a_step_need_their_logits_and_tables() -> None:
    change = grown(running_requests=BASE.running_requests + 100)
    row = MEMORY.thinker.batch_row + 4 * RELEASED.context
    assert change == {"thinker": 100 * row}


def test_few_requests_need_no_less_than_the_log_probabilities_of_a_prompt() -> None:
    few, fewer = (grown(running_requests=count)["thinker"] for count in (64, 32))
    graphs_and_tables = 32 * (2_000_000 + 4 * RELEASED.context) + 4 * 8_000_000
    assert few - fewer == graphs_and_tables


def test_tokens_of_a_prefill_need_their_activations() -> None:
    change = grown(prefill_tokens=BASE.prefill_tokens + 1000)
    assert change == {"thinker": ALLOCATOR_SHARE * 1000 * MEMORY.thinker.prompt_token}


def test_a_single_picture_may_be_larger_than_a_pass() -> None:
    # The largest has 65,536 patches.
    assert grown(image_patches=65_536) == {}
    assert grown(image_patches=65_636) == {
        "image_encoder": ALLOCATOR_SHARE * 100 * MEMORY.image_encoder.patch
    }
    smaller = grown(image_pixels=1 << 20)["image_encoder"]
    patches = 65_536 - BASE.image_patches
    assert smaller == -ALLOCATOR_SHARE * patches * MEMORY.image_encoder.patch


def test_graphs_need_memory() -> None:
    assert grown(has_prefill_graphs=False) == {"thinker": -800_000_000}
    assert grown(has_image_graphs=False) == {
        "image_encoder": -2 * 8_192 * MEMORY.image_encoder.patch
    }


def test_seconds_of_a_pass_need_their_activations() -> None:
    assert (
        grown(audio_seconds=0)["audio_encoder"]
        == -compute_reserves(RELEASED, BASE).audio_encoder + CONTEXT
    )


@pytest.mark.parametrize(("slots", "streams"), [(256, 0), (64, -64)])
def test_slots_need_their_cache_and_steps_at_most_128_streams(slots: int, streams: int) -> None:
    talker = MEMORY.talker
    kept = (slots - BASE.slots) * (BASE.slot_positions * talker.position + talker.slot)
    # A prefill of a whole context needs more than the flow model of 128 streams.
    step = 2 * streams * talker.vocoder_stream
    assert grown(slots=slots) == {"talker": kept + step}


def test_a_short_context_needs_less() -> None:
    # Then the flow model needs more than a prefill.
    talker, positions = MEMORY.talker, 512
    kept = (BASE.slots + 1) * (positions - BASE.slot_positions) * talker.position
    step = BASE.slots * talker.step_stream - BASE.slot_positions**2 * talker.prompt_pair
    assert grown(slot_positions=positions) == {"talker": kept + 2 * step}


def test_fp8_weights_of_the_talker_are_a_copy() -> None:
    assert grown(has_fp8_talker=True) == {"talker": MEMORY.talker.fp8_copies}


def test_more_images_in_a_step_need_more() -> None:
    assert grown(drawn_images=2) == {}
    assert grown(drawn_images=6) == {"image": 700_000_000}
