"""Second names of presets, as the command line gives them."""

import pytest

from sglang_omni.protocol.errors import ConfigError
from sglang_omni.voices.aliases import parse_aliases, validate_aliases


def test_each_entry_names_a_preset() -> None:
    assert parse_aliases(()) == {}
    assert parse_aliases(("alloy=river", "my voice=river bank")) == {
        "alloy": "river",
        "my voice": "river bank",
    }


@pytest.mark.parametrize(
    "entries",
    [["alloy"], ["alloy="], ["=river"], ["../a=river"], ["default=river"], ["a=river", "a=prompt"]],
)
def test_an_unclear_entry_is_refused(entries: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"voice_alias: .* (ALIAS=PRESET|two voices)"):
        parse_aliases(entries)


def test_aliases_are_of_presets_and_hide_none() -> None:
    validate_aliases({"alloy": "river"}, ("prompt", "river"))
    with pytest.raises(ConfigError, match="'sea' is not in the checkpoint; it has: prompt, river"):
        validate_aliases({"alloy": "sea"}, ("prompt", "river"))
    with pytest.raises(ConfigError, match="'prompt' is itself a preset"):
        validate_aliases({"prompt": "river"}, ("prompt", "river"))
