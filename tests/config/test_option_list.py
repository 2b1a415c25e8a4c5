"""What is known of every option."""

import pytest

from sglang_omni.config.option_list import (
    Option,
    OptionSection,
    find_node,
    list_names,
    list_options,
    list_sections,
)
from sglang_omni.config.tree import Config
from tests.config.option_values import VALUES, leaf

OPTIONS = list_options()


def test_the_options_are_the_leaves_of_the_tree() -> None:
    assert [option.path for option in OPTIONS] == list(VALUES)
    assert [name for name, (_, value) in VALUES.items() if value == leaf(Config(), name)] == []
    assert [option.default for option in OPTIONS] == [leaf(Config(), one.path) for one in OPTIONS]


@pytest.mark.parametrize("node", [*OPTIONS, *list_sections()], ids=lambda node: node.path)
def test_every_option_has_a_description_of_one_line(node: Option | OptionSection) -> None:
    assert node.description.endswith(".")
    assert "\n" not in node.description
    assert 15 <= len(node.description) <= 130
    assert node.description[0].isupper()


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.path)
def test_an_option_that_may_be_unset_says_what_holds_then(option: Option) -> None:
    is_empty = option.default in (None, ())
    # Without any of these nothing is added.
    assert ("unset: " in option.description) == (
        is_empty and option.path not in ("model_alias", "voice_alias", "cors_origin")
    )


def test_names_are_listed_by_section() -> None:
    assert list_names("admission") == ["queue_length", "queue_seconds"]
    assert list_names("")[:1] == ["model_path"]
    assert list_names("")[-1:] == ["text"]
    assert [section.path for section in list_sections()][:3] == ["", "http", "rate_limit"]
    assert {option.section for option in OPTIONS} == {one.path for one in list_sections()}


def test_options_of_a_section_of_serve_are_of_serve_too() -> None:
    marked = {"host": True, "http": True, "http.max_url_bytes": True, "media.pixels": False}
    found = {path: node.is_serve_only for path in marked if (node := find_node(path))}
    assert found == marked
    assert find_node("media.no_such") is None
