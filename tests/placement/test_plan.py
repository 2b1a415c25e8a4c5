"""Plans: what goes where, what is kept of what was given, and what is refused."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from sglang_omni.config.load import load_config
from sglang_omni.config.tree import Config
from sglang_omni.engines.runtime.gpus import Gpu
from sglang_omni.models.checkpoint_files import WEIGHTS_FILE
from sglang_omni.models.ming.config import read_talker_config, read_vae_config
from sglang_omni.models.ming.sizes import read_sizes
from sglang_omni.models.ming.speech.talker import Talker
from sglang_omni.models.ming.speech.vae import AudioVAE
from sglang_omni.models.sizes import CheckpointSizes
from sglang_omni.placement.gpu_inventory import build_inventory
from sglang_omni.placement.place import check_thinker_fits, place_engines
from sglang_omni.placement.plan import USABLE_FRACTION, PlacementConstraints, make_plan
from sglang_omni.placement.table import format_plan
from sglang_omni.protocol.errors import ConfigError, StartupError
from tests.placement.released import RELEASED, count_module
from tests.testing.golden import TINY

GB = 10**9
BF16 = CheckpointSizes(
    matrices=203 * GB,
    rest=3 * GB,
    image_encoder=GB,
    audio_encoder=GB,
    talker=3 * GB,
    kv_bytes=65_536,
    kv_heads=4,
    context=32_768,
    fp8=False,
    working=RELEASED.working,
    expert_matrices=200 * GB,
)
FP8 = BF16.quantized()


def h200(count: int) -> tuple[Gpu, ...]:
    return tuple(Gpu(index, "NVIDIA H200", 150 * GB, 149 * GB) for index in range(count))


def config(**values: object) -> Config:
    given = {"model_path": "/models/ming", "placement": "auto", **values}
    return load_config(None, {name.replace("__", "."): value for name, value in given.items()})


@pytest.mark.parametrize(
    ("sizes", "count", "thinker", "talker", "encoders"),
    [
        (FP8, 1, (0,), 0, 0),
        (FP8, 2, (0,), 1, 1),
        (BF16, 2, (0, 1), 0, 1),
        (BF16, 3, (0, 1), 2, 2),
        (BF16, 4, (0, 1), 2, 3),
        (BF16, 5, (0, 1, 2, 3), 4, 4),
        (BF16, 8, (0, 1, 2, 3), 4, 5),
    ],
)
def test_a_card_that_is_over_serves_speech_and_pictures(
    sizes: CheckpointSizes, count: int, thinker: tuple[int, ...], talker: int, encoders: int
) -> None:
    plan = make_plan(sizes, h200(count), PlacementConstraints())
    assert plan is not None
    assert (plan.thinker, plan.talker) == (thinker, (talker,))
    assert (plan.image_encoder, plan.audio_encoder) == ((encoders,), (encoders,))


@pytest.mark.parametrize("count", range(1, 9))
@pytest.mark.parametrize("sizes", [BF16, FP8])
def test_no_card_is_given_more_than_it_has(sizes: CheckpointSizes, count: int) -> None:
    plan = make_plan(sizes, h200(count), PlacementConstraints())
    if plan is None:
        assert sizes is BF16
        assert count == 1
        return
    for card in h200(count):
        used = sum(s.weight_bytes + s.working_bytes for s in plan.shares if s.gpu == card.index)
        ranks = len(plan.thinker) if card.index in plan.thinker else 0
        cache = plan.kv_tokens * sizes.kv_bytes // ranks if ranks else 0
        assert used + cache <= card.total_bytes * USABLE_FRACTION
    assert plan.kv_tokens >= sizes.context


def test_what_is_given_stays() -> None:
    given = config(
        thinker__tp_size="2",
        thinker__gpus="2,3",
        talker__gpus="2",
        image_encoder__tp_size="2",
        image_encoder__gpus="0,1",
        thinker__mem_fraction_static="0.8",
    )
    placed, plan = place_engines(given, FP8, build_inventory(h200(4)))
    assert plan.thinker == (2, 3)
    assert plan.talker == (2,)
    assert plan.image_encoder == (0, 1)
    assert placed.thinker.mem_fraction_static == 0.8
    assert placed.thinker.max_total_tokens is None
    assert placed.audio_encoder.gpus == (0,)


def test_ranks_and_cards_that_disagree_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"thinker\.gpus must name 4"):
        place_engines(
            config(thinker__tp_size="4", thinker__gpus="0,1"), FP8, build_inventory(h200(4))
        )
    _, plan = place_engines(config(thinker__gpus="1,2"), FP8, build_inventory(h200(4)))
    assert plan.thinker == (1, 2)


def test_a_text_only_server_places_no_encoders() -> None:
    placed, plan = place_engines(config(text_only="true"), FP8, build_inventory(h200(1)))
    assert {share.part for share in plan.shares} == {"thinker", "talker"}
    assert plan.audio_encoder == ()
    assert placed.image_encoder.gpus == ()


@pytest.mark.parametrize(("sizes", "count", "gpu"), [(FP8, 2, 1), (BF16, 4, 3), (FP8, 8, 6)])
def test_images_are_drawn_where_the_most_memory_is_free(
    sizes: CheckpointSizes, count: int, gpu: int
) -> None:
    # The talker's card has less free memory than the encoders'.
    sizes = replace(sizes, talker=12 * GB, image=16 * GB)
    placed, plan = place_engines(config(), sizes, build_inventory(h200(count)))
    assert plan.image == placed.image.gpus == (gpu,)
    assert "  image  " in format_plan(plan, build_inventory(h200(count)))


@pytest.mark.parametrize(
    "options", [{"image__enabled": "never"}, {"text_only": True}, {"image__device": "cpu"}]
)
def test_images_that_are_not_drawn_on_a_card_take_no_room(options: dict[str, object]) -> None:
    placed, plan = place_engines(
        config(**options), replace(FP8, image=16 * GB), build_inventory(h200(1))
    )
    assert plan.image == placed.image.gpus == ()
    assert "image" not in {share.part for share in plan.shares}


def test_given_cards_draw_images() -> None:
    placed, plan = place_engines(
        config(image__gpus="0,1"), replace(FP8, image=16 * GB), build_inventory(h200(2))
    )
    assert plan.image == placed.image.gpus == (0, 1)


def test_images_are_left_out_where_they_do_not_fit_unless_they_are_required() -> None:
    sizes = replace(FP8, image=16 * GB)
    placed, plan = place_engines(config(), sizes, build_inventory(h200(1)))
    assert plan.image == ()
    assert placed.image.enabled == "never"
    assert "no images are drawn: the image engine's 16.0 GB" in format_plan(
        plan, build_inventory(h200(1))
    )
    with pytest.raises(StartupError, match=r"--image\.enabled never saves"):
        place_engines(config(image__enabled="always"), sizes, build_inventory(h200(1)))


def test_a_plan_becomes_the_configuration_and_a_table() -> None:
    placed, plan = place_engines(config(), FP8, build_inventory(h200(1)))
    assert placed.thinker.tp_size == 1
    assert placed.thinker.gpus == (0,)
    assert placed.thinker.max_total_tokens == plan.kv_tokens > 100_000
    assert placed.talker.gpus == placed.audio_encoder.gpus == (0,)
    shown = format_plan(plan, build_inventory(h200(1)))
    for part in ("thinker", "talker", "image encoder", "audio encoder", "NVIDIA H200", "FP8"):
        assert part in shown


def test_too_large_a_model_is_refused_with_what_would_fit() -> None:
    with pytest.raises(StartupError) as refused:
        place_engines(config(), BF16, build_inventory(h200(1)))
    message = refused.value.message
    assert "sgl-omni quantize /models/ming /models/ming-fp8 --fp8" in message
    assert "in bfloat16 it needs 2 such GPU(s)" in message


def test_it_is_refused_by_hand_too_and_without_a_useless_hint() -> None:
    by_hand = config(placement="manual")
    with pytest.raises(StartupError, match="sgl-omni quantize"):
        check_thinker_fits(by_hand, BF16, build_inventory(h200(1)))
    check_thinker_fits(by_hand, FP8, build_inventory(h200(1)))
    check_thinker_fits(
        config(placement="manual", thinker__tp_size="2"), BF16, build_inventory(h200(2))
    )
    small = tuple(replace(card, total_bytes=24 * GB) for card in h200(1))
    with pytest.raises(StartupError) as refused:
        check_thinker_fits(by_hand, FP8, build_inventory(small))
    assert "quantize" not in refused.value.message


def test_a_given_placement_that_does_not_fit_names_one_that_does() -> None:
    with pytest.raises(StartupError, match="it needs 2 such"):
        place_engines(config(thinker__tp_size="1"), BF16, build_inventory(h200(2)))
    with pytest.raises(StartupError):
        place_engines(config(talker__gpus="7"), FP8, build_inventory(h200(2)))


def test_sizes_are_read_from_headers() -> None:
    sizes = read_sizes(TINY)
    files = sum(path.stat().st_size for path in TINY.glob("model*.safetensors"))
    parts = sizes.thinker + sizes.image_encoder + sizes.audio_encoder
    # Headers take a little of the files; what is float32 there is served in bfloat16.
    assert 0.85 * files < parts < files
    assert min(sizes.matrices, sizes.rest, sizes.image_encoder, sizes.audio_encoder) > 0
    assert sizes.talker > 0
    assert not sizes.fp8
    text = json.loads((TINY / "config.json").read_text())["llm_config"]
    assert sizes.kv_bytes == 2 * 2 * 128 * text["num_hidden_layers"] * text["num_key_value_heads"]


def test_encoder_layers_that_the_vae_does_not_run_take_no_room(tmp_path: Path) -> None:
    folder = tmp_path / "tiny"
    shutil.copytree(TINY, folder)
    speech = folder / "talker"
    sizes, vae = read_sizes(folder), load_file(speech / "vae" / WEIGHTS_FILE)
    loaded = count_module(Talker(read_talker_config(speech)))
    loaded += count_module(AudioVAE(read_vae_config(speech / "vae")))
    # The talker's file has two small tables that are computed instead.
    assert 0 <= sizes.talker - loaded < 1000
    first = "encoder.encoder.layers.0."
    more = {name: tensor for name, tensor in vae.items() if name.startswith(first)}
    unused = {name.replace(first, "encoder.encoder.layers.23."): more[name] for name in more}
    assert unused
    save_file(unused, speech / "vae" / "more.safetensors")
    assert read_sizes(folder).talker == sizes.talker
    # The talker's own layers count, however they are named.
    save_file(unused, speech / "more.safetensors")
    assert read_sizes(folder).talker > sizes.talker


def test_experts_in_four_bits_leave_more_room_for_the_cache() -> None:
    # What a plan of the released shape has: 52 GB of experts, and 4 GB of matrices in FP8.
    sizes = replace(BF16, matrices=56 * GB, int4=True)
    given = config(thinker__max_running_requests="256")
    placed, plan = place_engines(given, sizes, build_inventory(h200(1)))
    assert placed.thinker.gpus == placed.talker.gpus == (0,)
    assert "thinker in four bits on 1 rank" in format_plan(plan, build_inventory(h200(1)))
    in_eight = place_engines(given, FP8, build_inventory(h200(1)))[1]
    more = (FP8.matrices - sizes.matrices) // BF16.kv_bytes
    assert plan.kv_tokens - in_eight.kv_tokens == pytest.approx(more, abs=1)
    assert sizes.quantized() is sizes


def test_planning_needs_no_torch() -> None:
    program = "import sys, sglang_omni.placement.place; sys.exit('torch' in sys.modules)"
    folder = Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", program], cwd=folder).returncode == 0


def test_a_replica_is_planned_for_every_card_that_is_named() -> None:
    given = config(
        thinker__gpus="0",
        talker__gpus="1,2,2",
        image_encoder__tp_size="2",
        image_encoder__gpus="0,1,2,3",
        audio_encoder__gpus="1,3",
    )
    placed, plan = place_engines(given, FP8, build_inventory(h200(4)))
    inventory: dict[str, list[int]] = {}
    for share in plan.shares:
        inventory.setdefault(share.part, []).append(share.gpu)
    assert inventory["talker"] == [1, 2, 2]
    assert inventory["audio encoder"] == [1, 3]
    assert inventory["image encoder"] == [0, 1, 2, 3]
    assert {s.weight_bytes for s in plan.shares if s.part == "image encoder"} == {
        FP8.image_encoder // 2
    }
    assert placed.talker.gpus == (1, 2, 2)
    assert placed.audio_encoder.gpus == (1, 3)
    assert place_engines(
        config(image_encoder__tp_size="1", talker__gpus="0,0,0"), FP8, build_inventory(h200(2))
    )
    with pytest.raises(StartupError):
        place_engines(config(talker__gpus=",".join("0" * 12)), FP8, build_inventory(h200(1)))
