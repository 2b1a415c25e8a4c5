"""Which values an option takes, in words."""

from typing import Annotated, Literal

import pytest
from pydantic import Field

from sglang_omni.config.allowed_values import describe_values
from sglang_omni.config.option_list import find_node
from sglang_omni.config.option_types import Count


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("port", "an integer from 0 to 65535"),
        ("thinker.tp_size", "an integer of at least 1"),
        ("thinker.mem_fraction_static", "a number from 0 to 1"),
        ("realtime.stall_seconds", "a number of at least 0.1"),
        ("image_encoder.tp_size", "an integer from 1 to 4"),
        ("thinker.gpus", "a list of integers of at least 0"),
        ("api_key", "a list of texts"),
        ("thinker.server_args", "a mapping of names to values"),
        ("text_only", "true or false"),
        ("device", "auto, cpu or cuda"),
        ("log_format", "text or json"),
        ("host", "text"),
        ("tls_key", "a path"),
        ("talker", "a mapping of options to values"),
    ],
)
def test_the_values_of_an_option_are_told_in_words(path: str, words: str) -> None:
    node = find_node(path)
    assert node is not None
    assert node.values == words


@pytest.mark.parametrize(
    ("option_type", "words"),
    [
        (Literal["one"], "one"),
        (Count | None, "an integer of at least 1"),
        (Annotated[Count, Field(le=3)], "an integer from 1 to 3"),
        (Annotated[int, Field(le=3)], "an integer of at most 3"),
    ],
)
def test_the_values_of_a_type_are_told_in_words(option_type: object, words: str) -> None:
    assert describe_values(option_type) == words
