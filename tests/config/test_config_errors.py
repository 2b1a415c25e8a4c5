"""Errors about options say what is wrong, and what the option is."""

import pytest

from sglang_omni.config.config_errors import make_option_error
from sglang_omni.config.load import load_config
from sglang_omni.config.option_list import Option, list_options
from sglang_omni.protocol.errors import ConfigError


@pytest.mark.parametrize("option", list_options(), ids=lambda option: option.path)
def test_an_error_names_the_path_the_values_the_value_and_the_description(option: Option) -> None:
    # No option takes a list in a list.
    with pytest.raises(ConfigError) as refused:
        load_config(None, {option.path: [[]]})
    assert refused.value.param == option.path
    assert refused.value.message == (
        f"{option.path} must be {option.values}, not [[]]. {option.path}: {option.description}"
    )


def test_an_error_in_an_entry_is_one_of_the_whole_option() -> None:
    with pytest.raises(ConfigError) as refused:
        load_config(None, {"thinker": {"gpus": [0, "one"]}})
    assert refused.value.message == (
        "thinker.gpus must be a list of integers of at least 0, not [0, 'one']. thinker.gpus: "
        "GPUs of the ranks of a machine; unset: the placement's choice, or the first ones."
    )


def test_options_that_contradict_each_other_are_described_too() -> None:
    with pytest.raises(ConfigError) as refused:
        load_config(None, {"segment.max_tokens": "4"})
    assert refused.value.message == (
        "segment.min_tokens must be from 1 to segment.max_tokens, which is 4, not 8. "
        "segment.min_tokens: Minimum length of a segment that ends at the end of a sentence."
    )


def test_a_section_has_a_description_as_well() -> None:
    assert make_option_error("http", "http is wrong").message == (
        "http is wrong. http: Limits of every connection, which apply before a key is checked."
    )
