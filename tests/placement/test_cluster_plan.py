"""Plans over several machines: what stays here, what moves, and what is kept of what was given."""

from dataclasses import replace

import pytest

from sglang_omni.config.tree import Config
from sglang_omni.engines.runtime.gpus import Gpu
from sglang_omni.models.sizes import CheckpointSizes
from sglang_omni.placement.cluster_plan import make_cluster_plan
from sglang_omni.placement.gpu_inventory import GpuInventory, build_inventory
from sglang_omni.placement.limits import iter_smaller_limits, read_limits
from sglang_omni.placement.place import check_manual_placement, place_engines
from sglang_omni.placement.plan import USABLE_FRACTION, PlacementConstraints, PlacementPlan
from sglang_omni.placement.table import format_plan
from sglang_omni.protocol.errors import StartupError
from tests.placement.clusters import GB, cards_of, h200s, node, server_node
from tests.placement.test_plan import BF16, FP8
from tests.placement.test_plan import config as base_config

IMAGES = replace(FP8, image=16 * GB)
# What a plan ends with where engines leave little room.
SMALLEST = list(iter_smaller_limits(Config()))[-1][0]
SMALL_ENGINES = PlacementConstraints(limits=read_limits(SMALLEST))


def config(**values: object) -> Config:
    return base_config(cluster__ray_address="10.0.1.1:6379", **values)


def cluster(local: tuple[Gpu, ...], **others: tuple[Gpu, ...]) -> GpuInventory:
    reports = [server_node(local), *(node(name, gpus) for name, gpus in others.items())]
    return build_inventory(local, reports)


def places(plan: PlacementPlan, inventory: GpuInventory) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for share in plan.shares:
        found.setdefault(share.part, []).append(inventory.format_place(share.gpu))
    return found


def check_sums(plan: PlacementPlan, inventory: GpuInventory, sizes: CheckpointSizes) -> None:
    """No GPU has more than it holds, the KV cache included."""
    for gpu in inventory.gpus:
        used = sum(share.total_bytes for share in plan.shares if share.gpu == gpu.index)
        if gpu.index in plan.thinker:
            used += plan.kv_tokens * sizes.kv_bytes // len(plan.thinker)
        assert used <= gpu.total_bytes * USABLE_FRACTION
    assert plan.kv_tokens >= sizes.context
    assert not any(map(inventory.get_node, plan.thinker))


@pytest.mark.parametrize("num_local", range(1, 5))
@pytest.mark.parametrize("num_nodes", range(1, 4))
@pytest.mark.parametrize("sizes", [FP8, BF16, IMAGES])
def test_what_fits_here_stays_here(sizes: CheckpointSizes, num_local: int, num_nodes: int) -> None:
    alone = make_cluster_plan(sizes, build_inventory(h200s(num_local)), PlacementConstraints())
    others = {f"b{number}": h200s(2) for number in range(num_nodes)}
    inventory = cluster(h200s(num_local), **others)
    plan = make_cluster_plan(sizes, inventory, PlacementConstraints())
    if alone is not None:
        assert plan == alone
    elif plan is None:
        # The thinker in bfloat16 needs two GPUs of this machine.
        assert (sizes, num_local) == (BF16, 1)
    else:
        check_sums(plan, inventory, sizes)


def test_images_that_do_not_fit_here_are_drawn_on_another_machine() -> None:
    inventory = cluster(cards_of(145, 1), b=h200s(1))
    placed, plan = place_engines(config(), IMAGES, inventory)
    assert placed.image.place == ("b:0",)
    assert placed.image.gpus == ()
    assert placed.image.enabled == "auto"
    # Where there is room beside the thinker, engines stay.
    assert places(plan, inventory)["talker"] == ["local:0"]
    assert placed.talker.gpus == (0,)
    assert placed.talker.place == ()


def test_engines_that_have_no_room_here_spread_over_the_other_machines() -> None:
    inventory = cluster(
        cards_of(118, 1), b=cards_of(24, 1, "NVIDIA L4"), c=cards_of(48, 1, "NVIDIA L40")
    )
    placed, plan = place_engines(config(), IMAGES, inventory)
    check_sums(plan, inventory, IMAGES)
    assert places(plan, inventory) == {
        "thinker": ["local:0"],
        # Each takes the emptiest, and the last one what has room.
        "talker": ["b:0"],
        "image encoder": ["c:0"],
        "audio encoder": ["b:0"],
        "image": ["c:0"],
    }
    assert (placed.talker.place, placed.image.place) == (("b:0",), ("c:0",))
    assert placed.thinker.gpus == (0,)
    assert placed.thinker.max_total_tokens == plan.kv_tokens


def test_the_largest_is_first_where_the_order_of_engines_does_not_fit() -> None:
    # The talker would take the only GPU that holds the image engine.
    inventory = cluster(cards_of(118, 1), b=cards_of(24, 1), c=cards_of(12, 3))
    plan = make_cluster_plan(IMAGES, inventory, SMALL_ENGINES)
    assert plan is not None
    check_sums(plan, inventory, IMAGES)
    assert places(plan, inventory)["image"] == ["b:0"]


def test_the_thinker_takes_the_cards_that_others_leave() -> None:
    # Two cards hold the thinker and little else; one is too small for it.
    inventory = cluster(cards_of(116, 2), b=cards_of(80, 1))
    plan = make_cluster_plan(BF16, inventory, SMALL_ENGINES)
    assert plan is not None
    check_sums(plan, inventory, BF16)
    assert plan.thinker == (0, 1)
    assert set(places(plan, inventory)["talker"]) == {"b:0"}


def test_ranks_of_an_encoder_share_a_machine() -> None:
    inventory = cluster(cards_of(118, 1), b=cards_of(24, 1), c=cards_of(24, 2))
    placed, plan = place_engines(config(image_encoder__tp_size="2"), FP8, inventory)
    assert placed.image_encoder.place == ("c:0", "c:1")
    check_sums(plan, inventory, FP8)


def test_what_is_given_stays() -> None:
    inventory = cluster(h200s(2), b=h200s(2), c=h200s(1))
    given = config(
        talker__place="b:1,c:0,local:1",
        audio_encoder__gpus="0",
        thinker__gpus="1",
        image__place="b",
    )
    placed, plan = place_engines(given, IMAGES, inventory)
    check_sums(plan, inventory, IMAGES)
    assert placed.talker == given.talker
    assert placed.image == given.image
    found = places(plan, inventory)
    assert found["talker"] == ["b:1", "c:0", "local:1"]
    assert found["image"] == ["b:0"]
    assert (placed.audio_encoder.gpus, placed.thinker.gpus) == ((0,), (1,))
    assert placed.image_encoder.gpus == (0,)


def test_a_machine_that_cannot_run_engines_is_passed_over_and_named() -> None:
    local = cards_of(135, 1)
    reports = [server_node(local), node("b", h200s(1), version="0.0.1"), node("c", h200s(1))]
    inventory = build_inventory(local, reports)
    placed, plan = place_engines(config(), IMAGES, inventory)
    assert placed.image.place == ("c:0",)
    shown = format_plan(plan, inventory)
    assert "b is not used: it has sglang-omni 0.0.1" in shown
    with pytest.raises(StartupError, match=r"image\.place: b cannot run engines.*\n.*fits on c:0"):
        place_engines(config(image__place="b"), IMAGES, inventory)


def test_the_table_names_machines() -> None:
    inventory = cluster(h200s(1), node_b=cards_of(48, 1, "NVIDIA L40"))
    shown = format_plan(place_engines(config(), IMAGES, inventory)[1], inventory).splitlines()
    assert shown[1].split() == ["machine", "GPU", "part", "weights", "working"]
    rows = [" ".join(line.split()) for line in shown]
    assert rows[2] == "local 0: NVIDIA H200 (150) thinker 104.5 6.8"
    assert rows[3] == "talker 3.0 6.5"
    assert rows[6] == "node_b 0: NVIDIA L40 (48) image 16.0 6.4"
    assert shown[-1] == "  machines of the cluster: a (this machine), node_b"


def test_what_fits_nowhere_is_told_with_all_machines() -> None:
    inventory = cluster(cards_of(24, 1), b=cards_of(24, 1, "NVIDIA L4"))
    with pytest.raises(StartupError, match=r"does not fit.*\non b: NVIDIA L4 of 24 GB"):
        place_engines(config(), FP8, inventory)
    with pytest.raises(StartupError, match="GPUs found: none"):
        place_engines(config(), FP8, cluster((), b=h200s(4)))


def by_hand(**values: object) -> Config:
    return config(placement="manual", **values)


def test_places_by_hand_are_listed_with_everything_else() -> None:
    inventory = cluster(h200s(1), b=h200s(1))
    shares = check_manual_placement(by_hand(talker__place="b,b:0"), FP8, inventory)
    found = [(share.part, inventory.format_place(share.gpu)) for share in shares]
    assert found == [
        ("thinker", "local:0"),
        ("talker", "b:0"),
        ("talker", "b:0"),
        ("image encoder", "local:0"),
        ("audio encoder", "local:0"),
    ]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"talker__place": "z"}, r"talker\.place: .* no node 'z'; its nodes: a, b, c\n"),
        ({"talker__place": "b:3"}, r"talker\.place: b has no GPU 3; its GPUs: 0, 1\n"),
        ({"talker__place": "c:0"}, r"talker\.place: c has no GPU 0; its GPUs: none\n"),
        (
            {"talker__place": "b:0"},
            r"b:0, NVIDIA T4 of 6 GB, cannot hold talker \(3\.0 GB of weights, (6\.5|3\.8) GB",
        ),
        (
            {"talker__place": "b:1", "image__place": "b:1"},
            r"talker\.place: b:1, .* of 28 GB, cannot hold talker \(3.*, image \(16\.0 GB of",
        ),
    ],
)
def test_a_place_that_cannot_be_used_is_refused_with_the_nearest(
    options: dict[str, object], reason: str
) -> None:
    gpus = (Gpu(0, "NVIDIA T4", 6 * GB, 6 * GB), Gpu(1, "NVIDIA L40", 28 * GB, 28 * GB))
    inventory = cluster(cards_of(141, 2), b=gpus, c=())
    for placement in ("manual", "auto"):
        with pytest.raises(StartupError, match=reason) as refused:
            given = config(placement=placement, **options)
            if placement == "auto":
                place_engines(given, IMAGES, inventory)
            else:
                check_manual_placement(given, IMAGES, inventory)
        last = refused.value.message.splitlines()[-1]
        if placement == "auto":
            # The rest of the plan is not known yet.
            assert last.endswith(".place to let the placement choose")
        else:
            assert "it fits on" in last
            assert "b:0" not in last


def test_the_nearest_is_a_place_that_is_then_accepted() -> None:
    inventory = cluster(cards_of(118, 1), b=cards_of(9, 1), c=cards_of(24, 1))
    with pytest.raises(StartupError, match=r"talker takes 9\.5 GB; it fits on c:0$"):
        check_manual_placement(by_hand(talker__place="b:0"), FP8, inventory)
    assert check_manual_placement(by_hand(talker__place="c:0"), FP8, inventory)
    small = cluster(cards_of(112, 1), b=cards_of(9, 1))
    with pytest.raises(StartupError, match=r"the most room is on b:0: 8\.7 GB"):
        check_manual_placement(by_hand(talker__place="b:0"), FP8, small)


def test_only_named_cards_are_checked_by_hand() -> None:
    # The same server without places is not refused for what a plan would not do.
    inventory = cluster(cards_of(112, 1), b=h200s(1))
    assert check_manual_placement(by_hand(), FP8, inventory)
    with pytest.raises(StartupError, match=r"talker\.place: local:0, .* cannot hold thinker"):
        check_manual_placement(by_hand(talker__place="local:0"), FP8, inventory)
