"""The names of the served model: its own, the configured aliases and the well-known ones."""

import pytest

from sglang_omni.protocol.compat.model_names import build_model_names, iterate_well_known
from sglang_omni.protocol.errors import ConfigError
from sglang_omni.serving.model_names import parse_model_aliases

# What programs send unless they are told otherwise.
DEFAULTS = (
    *("tts-1", "tts-1-hd", "gpt-4o-mini-tts", "whisper-1", "gpt-4o-transcribe", "gpt-4o-mini"),
    *("gpt-4o-audio-preview", "gpt-realtime", "gpt-realtime-mini", "default"),
    # langchain-openai, pydantic-ai, openai-agents' runner and voice pipeline, litellm.
    *("gpt-3.5-turbo", "gpt-5.2", "gpt-5.6-luna", "gpt-transcribe", "gpt-3.5-turbo-instruct"),
)


@pytest.mark.parametrize(
    "name", [*DEFAULTS, "gpt-4o-mini-2024-07-18", "gpt-4o-mini-tts-2025-03-20"]
)
def test_names_that_programs_send_by_default_are_known(name: str) -> None:
    assert build_model_names(("ming",), {}, strict=False).find(name) == "ming"
    assert build_model_names(("ming",), {}, strict=True).find(name) is None


@pytest.mark.parametrize("name", ["", "o3", "gpt-4o-mini-2024", "2024-07-18", "Tts-1", "tts-1 "])
def test_other_names_are_unknown(name: str) -> None:
    assert build_model_names(("ming",), {}, strict=False).find(name) is None


def test_served_names_come_before_aliases_and_those_before_the_well_known() -> None:
    names = build_model_names(("ming", "tts-1"), {"whisper-1": "tts-1"}, strict=False)
    assert names.main == "ming"
    assert [names.find(name) for name in ("ming", "tts-1", "whisper-1", "gpt-5")] == [
        *("ming", "tts-1", "tts-1", "ming")
    ]
    assert names.listed == ("ming", "tts-1", "whisper-1")


def test_no_well_known_name_is_listed_twice() -> None:
    assert len(list(iterate_well_known())) == len(set(iterate_well_known()))


def test_aliases_are_read_from_the_configuration() -> None:
    assert parse_model_aliases(("a=ming", " b = omni"), ("ming", "omni")) == {
        "a": "ming",
        "b": "omni",
    }


@pytest.mark.parametrize(
    "entries", [("a",), ("a=",), ("=ming",), ("a=other",), ("ming=ming",), ("a=ming", "a=ming")]
)
def test_invalid_aliases_are_refused(entries: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_model_aliases(entries, ("ming",))
    assert raised.value.param == "model_alias"
