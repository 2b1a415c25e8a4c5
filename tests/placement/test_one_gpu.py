"""Plans of the released model on one GPU: what is placed, with which limits, and what is told."""

from dataclasses import replace
from math import prod
from pathlib import Path
from types import SimpleNamespace

import pytest

from sglang_omni.engines.runtime.gpus import Gpu
from sglang_omni.models.ming.thinker.fp8_layout import SCALE_SUFFIX, is_quantized
from sglang_omni.models.ming.thinker.int4.layout import list_int4_tensors
from sglang_omni.models.ming.thinker.tensors import list_thinker_tensors
from sglang_omni.models.sizes import CheckpointSizes
from sglang_omni.placement.gpu_inventory import build_inventory
from sglang_omni.placement.limits import read_limits
from sglang_omni.placement.place import check_kv_cache_gpus, place_engines
from sglang_omni.placement.plan import PlacementPlan, get_usable_bytes
from sglang_omni.placement.reserves import compute_reserves
from sglang_omni.placement.table import format_plan
from sglang_omni.protocol.errors import ConfigError, StartupError
from tests.placement.released import (
    GB,
    IMAGE_BYTES,
    IMAGE_MATRIX_BYTES,
    RELEASED,
    TEXT,
    h100s,
    h200s,
    make_gpus,
)
from tests.placement.test_plan import config

WITH_IMAGES = replace(RELEASED, image=IMAGE_BYTES, image_matrices=IMAGE_MATRIX_BYTES)
INT4, FP8 = RELEASED.in_four_bits(), RELEASED.quantized()
HEAD_BYTES = TEXT["vocab_size"] * TEXT["hidden_size"]
# A checkpoint from before heads were quantized, or of `--head bf16`.
INT4_BF16_HEAD = replace(INT4, matrices=INT4.matrices - HEAD_BYTES, rest=INT4.rest + 2 * HEAD_BYTES)
INT4_IMAGES, FP8_IMAGES = WITH_IMAGES.in_four_bits(), WITH_IMAGES.quantized()

DOCUMENT = Path(__file__).parents[2] / "docs" / "placement.md"
ONE_H100 = """\
placement: thinker in four bits on 1 rank(s); in GB
  GPU                           part            weights  working
  0: NVIDIA H100 80GB HBM3 (86) thinker            55.1      5.8
                                talker              2.4      6.5
                                image encoder       1.2      3.9
                                audio encoder       1.4      1.4
  the thinker's KV cache holds 78,568 tokens in bfloat16; with --thinker.kv_cache_dtype fp8_e4m3 \
it would hold 157,136
  limits smaller than usual, to leave it room: thinker.max_running_requests 256, \
thinker.server_args.chunked_prefill_size 4096, audio_encoder.max_seconds 300
  the start reads 60.1 GB of weights: 30 s from a disk of 2 GB/s"""


def place(
    sizes: CheckpointSizes, gpus: tuple[Gpu, ...], **options: object
) -> tuple[PlacementPlan, str]:
    """Return the plan, and how it is shown; check that no GPU is given more than it has."""
    inventory = build_inventory(gpus)
    placed, plan = place_engines(config(**options), sizes, inventory)
    served = sizes.with_kv_cache(placed.thinker.kv_cache_dtype)
    for gpu in gpus:
        used = sum(share.total_bytes for share in plan.shares if share.gpu == gpu.index)
        if gpu.index in plan.thinker:
            used += plan.kv_tokens * served.kv_bytes // len(plan.thinker)
        assert used <= get_usable_bytes(gpu)
    assert placed.thinker.max_total_tokens == plan.kv_tokens
    return plan, format_plan(plan, inventory)


def test_the_size_in_four_bits_is_that_of_the_tensors() -> None:
    tensors = list_thinker_tensors(SimpleNamespace(**TEXT))
    stored = list_int4_tensors(tensors, symmetric=True, fp8_head=True)
    total = sum(_element_bytes(name) * prod(shape) for name, shape in stored.items())
    # The small scales of FP8 are not in the estimate.
    assert INT4.thinker == pytest.approx(total, rel=1e-3)


def _element_bytes(name: str) -> int:
    if name.endswith(SCALE_SUFFIX):
        return 4
    return 1 if is_quantized(name, fp8_head=True) else 2


def test_four_bits_with_everything_but_images_fit_an_h100() -> None:
    plan, shown = place(INT4, h100s(1))
    assert shown == ONE_H100
    assert plan.kv_tokens >= 60_000
    assert {share.part for share in plan.shares} == {
        "thinker",
        "talker",
        "image encoder",
        "audio encoder",
    }


ROWS = {
    "four bits on one H100": (INT4, h100s(1)),
    "four bits on two H100": (INT4_IMAGES, h100s(2)),
    "FP8 on one H200, no image engine": (FP8, h200s(1)),
    "FP8 on one H200": (FP8_IMAGES, h200s(1)),
    "four bits on one H200": (INT4_IMAGES, h200s(1)),
}


@pytest.mark.parametrize("row", ROWS)
def test_the_document_has_these_plans(row: str) -> None:
    text = DOCUMENT.read_text()
    assert ONE_H100 in text
    (cells,) = (line.split(" | ") for line in text.splitlines() if line.startswith(f"| {row} |"))
    for cell, dtype in zip(cells[1:3], ("auto", "fp8_e4m3"), strict=True):
        plan, _ = place(*ROWS[row], thinker__kv_cache_dtype=dtype)
        assert cell.removesuffix(" tokens") == f"{plan.kv_tokens:,}"
        assert (plan.smaller_limits == ()) == (cells[3] == "none")


def test_a_head_in_bfloat16_leaves_room_for_fewer_voices() -> None:
    plan, _ = place(INT4_BF16_HEAD, h100s(1))
    # The document says so.
    assert f"of 128 there, and {plan.kv_tokens:,} tokens of KV cache" in DOCUMENT.read_text()
    assert ("talker.slots", 64) in plan.smaller_limits


def test_a_cache_in_fp8_holds_twice_as_many_tokens_in_the_same_memory() -> None:
    plan, shown = place(INT4, h100s(1), thinker__kv_cache_dtype="fp8_e4m3")
    assert plan.kv_tokens >= 150_000
    assert plan.kv_tokens == pytest.approx(2 * place(INT4, h100s(1))[0].kv_tokens, abs=1)
    assert f"{plan.kv_tokens:,} tokens in fp8_e4m3\n" in shown
    # It is for more tokens, not for larger limits.
    assert plan.smaller_limits == place(INT4, h100s(1))[0].smaller_limits


def test_the_limits_of_the_plan_become_options_and_its_reserves_are_theirs() -> None:
    placed, plan = place_engines(config(), INT4, build_inventory(h100s(1)))
    assert placed.thinker.max_running_requests == 256
    assert placed.thinker.server_args == {"chunked_prefill_size": 4096}
    assert placed.audio_encoder.max_seconds == 300
    assert placed.talker.slots is None
    reserves = compute_reserves(INT4, read_limits(placed))
    assert {share.part: share.working_bytes for share in plan.shares} == {
        "thinker": reserves.thinker,
        "talker": reserves.talker,
        "image encoder": reserves.image_encoder,
        "audio encoder": reserves.audio_encoder,
    }
    fraction = 1 - reserves.thinker / get_usable_bytes(h100s(1)[0])
    assert placed.thinker.mem_fraction_static == pytest.approx(fraction, abs=1e-3)


def test_options_that_are_set_are_kept() -> None:
    given = config(
        talker__slots="128",
        thinker__max_running_requests="512",
        thinker__server_args="{chunked_prefill_size: 8192}",
        audio_encoder__max_seconds="400",
    )
    with pytest.raises(StartupError, match="does not fit"):
        place_engines(given, INT4_BF16_HEAD, build_inventory(h100s(1)))
    given = replace(given, thinker=replace(given.thinker, server_args={}))
    placed, plan = place_engines(given, INT4_BF16_HEAD, build_inventory(h100s(1)))
    assert plan.smaller_limits == (("thinker.server_args.chunked_prefill_size", 2048),)
    assert (placed.talker.slots, placed.thinker.max_running_requests) == (128, 512)
    assert placed.audio_encoder.max_seconds == 400


def test_by_hand_no_limit_changes() -> None:
    assert read_limits(config(placement="manual")).slots == 128


def test_bfloat16_does_not_fit_an_h100_and_the_message_says_what_would() -> None:
    with pytest.raises(StartupError) as refused:
        place_engines(config(), RELEASED, build_inventory(h100s(1)))
    lines = refused.value.message.splitlines()
    assert lines[0].startswith("the model does not fit: its thinker takes 206 GB in bfloat16")
    assert lines[1] == (
        "it fits on GPU(s) 0 with the thinker on 0 in four bits: "
        "sgl-omni quantize /models/ming /models/ming-int4 --int4"
    )
    assert lines[2].startswith("in bfloat16 it needs 4 such GPU(s)")


def test_fp8_does_not_fit_an_h100_and_is_not_quantized_again() -> None:
    with pytest.raises(StartupError, match="quantize SRC DST --int4, with its bfloat16"):
        place_engines(config(), FP8, build_inventory(h100s(1)))


def test_both_forms_that_fit_are_told() -> None:
    with pytest.raises(StartupError, match=r"in FP8: .* --fp8\n.* in four bits: .* --int4\n"):
        place_engines(config(), RELEASED, build_inventory(h200s(1)))


def test_images_are_not_drawn_beside_four_bits_on_an_h100() -> None:
    plan, shown = place(INT4_IMAGES, h100s(1))
    assert plan.image == ()
    assert plan.kv_tokens == place(INT4, h100s(1))[0].kv_tokens
    assert (
        "  no images are drawn: the image engine's 9.9 GB of weights do not fit beside the other "
        "engines; for images, add a GPU, or use one with more memory\n"
    ) in shown
    with pytest.raises(StartupError) as refused:
        place(INT4_IMAGES, h100s(1), image__enabled="always")
    assert (
        "its image engine takes another 10 GB of weights and 6 GB of working memory, which "
        "--image.enabled never saves\n"
        "in four bits it needs 2 such GPU(s)"
    ) in refused.value.message


def test_a_second_h100_draws_images() -> None:
    plan, shown = place(INT4_IMAGES, h100s(2))
    assert plan.image == (1,)
    assert "no images" not in shown


@pytest.mark.parametrize(("sizes", "tokens"), [(INT4_IMAGES, 600_000), (FP8_IMAGES, 75_000)])
def test_an_h200_holds_everything_with_images(sizes: CheckpointSizes, tokens: int) -> None:
    plan, shown = place(sizes, h200s(1))
    assert plan.image == plan.talker == plan.image_encoder == plan.audio_encoder == (0,)
    assert plan.kv_tokens >= tokens
    assert "no images" not in shown


def test_fp8_without_images_fits_an_h200_with_the_usual_limits_of_other_engines() -> None:
    plan, shown = place(FP8, h200s(1))
    assert plan.smaller_limits == (("thinker.max_running_requests", 256),)
    assert plan.kv_tokens == 279_507
    # A cache as large as this needs no smaller elements.
    assert "kv_cache_dtype" not in shown


def test_a_gpu_that_cannot_convert_fp8_is_refused() -> None:
    a100 = replace(make_gpus("NVIDIA A100", 80 * GB, 1)[0], capability=(8, 0))
    given = config(thinker__kv_cache_dtype="fp8_e4m3")
    with pytest.raises(ConfigError, match=r"compute capability 8\.9 or more; NVIDIA A100 has 8\.0"):
        check_kv_cache_gpus(given, build_inventory([a100]))
    check_kv_cache_gpus(config(), build_inventory([a100]))
    check_kv_cache_gpus(given, build_inventory(h100s(1)))
    # An old driver does not tell, and the GPU may be one that the thinker does not use.
    check_kv_cache_gpus(given, build_inventory([replace(a100, capability=None)]))
    on_the_other = config(thinker__kv_cache_dtype="fp8_e4m3", thinker__gpus="1")
    check_kv_cache_gpus(on_the_other, build_inventory([a100, h100s(2)[1]]))
