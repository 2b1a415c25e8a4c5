"""GPUs of several machines have one numbering, and are found by the names that options use."""

import pytest

from sglang_omni.engines.runtime.gpus import Gpu
from sglang_omni.placement.gpu_inventory import build_inventory
from sglang_omni.protocol.errors import StartupError
from tests.placement.clusters import GB, h200s, node, server_node


def test_every_card_is_found_by_its_machine() -> None:
    inventory = build_inventory(
        h200s(2), [server_node(h200s(2)), node("b", h200s(1)), node("c", ())]
    )
    assert len(inventory.gpus) == len({gpu.index for gpu in inventory.gpus}) == 3
    assert inventory.local == h200s(2)
    assert [inventory.format_place(number) for number in inventory.usable] == [
        "local:0",
        "local:1",
        "b:0",
    ]
    assert inventory.find("", 1) == 1
    assert inventory.format_place(inventory.find("b", 0)) == "b:0"


def test_a_node_is_found_by_its_host_name_too() -> None:
    inventory = build_inventory((), [node("b", h200s(1), hostname="gpu-7")])
    assert inventory.find("gpu-7", 0) == inventory.find("b", 0)


def test_the_own_machine_has_two_names() -> None:
    inventory = build_inventory(h200s(2), [server_node(h200s(2))])
    assert inventory.find("a", 1) == inventory.find("", 1) == 1


def test_cards_that_are_hidden_from_the_server_are_not_chosen_but_can_be_named() -> None:
    inventory = build_inventory(h200s(1), [server_node(h200s(3))], mask="2")
    assert inventory.find("a", 2) == 0
    assert inventory.find("a", 1) != 0
    assert inventory.usable == (0,)


def test_unknown_cards_of_the_own_machine_are_not_those_of_others() -> None:
    # Without a driver the server knows none of its own.
    inventory = build_inventory((), [node("b", h200s(1))])
    assert inventory.find("b", 0) != 0
    with pytest.raises(StartupError, match="local has no GPU 0; its GPUs: none"):
        inventory.find("", 0)


def test_what_is_named_and_not_there_is_told_with_what_is() -> None:
    inventory = build_inventory(h200s(1), [server_node(h200s(1)), node("b", h200s(2))])
    with pytest.raises(StartupError, match="b has no GPU 2; its GPUs: 0, 1"):
        inventory.find("b", 2)
    with pytest.raises(StartupError, match=r"a has no GPU 1; its GPUs: 0$"):
        inventory.find("a", 1)
    with pytest.raises(StartupError, match="no node 'z'; its nodes: a, b"):
        inventory.find("z", 0)


@pytest.mark.parametrize(
    ("report", "reason"),
    [
        (node("b", h200s(1), version="0.0.1"), r"it has sglang-omni 0\.0\.1, and the server"),
        (node("b", h200s(1), missing=("/model", "/tls/ca.pem")), "it lacks /model, /tls/ca.pem"),
        (node("b", None, error="no module named 'sglang_omni'"), "did not answer: no module"),
    ],
)
def test_a_machine_that_cannot_run_engines_is_not_used(report: object, reason: str) -> None:
    inventory = build_inventory(h200s(1), [report])  # type: ignore[list-item]
    assert inventory.usable == (0,)
    with pytest.raises(StartupError, match=f"b cannot run engines: .*{reason}"):
        inventory.find("b", 0)


def test_a_name_that_no_option_can_hold_is_not_chosen() -> None:
    assert build_inventory((), [node("fd00::2", (Gpu(0, "H200", GB, GB),))]).usable == ()
