"""OpenAI's voices are dealt out over the presets."""

from itertools import pairwise

from sglang_omni.protocol.compat.voice_names import OPENAI_VOICES, map_openai_voices


def test_every_voice_has_a_preset_and_neighbours_differ() -> None:
    voices = map_openai_voices(("a", "b", "c"))
    assert list(voices) == list(OPENAI_VOICES)
    assert voices["alloy"] == "a"
    assert all(voices[first] != voices[second] for first, second in pairwise(OPENAI_VOICES))


def test_one_preset_speaks_for_all() -> None:
    assert set(map_openai_voices(("a",)).values()) == {"a"}


def test_a_preset_keeps_its_name() -> None:
    voices = map_openai_voices(("ash", "b"))
    assert "ash" not in voices
    assert (voices["alloy"], voices["ballad"]) == ("ash", "ash")


def test_strict_names_and_no_presets_leave_none() -> None:
    assert map_openai_voices(("a",), strict=True) == map_openai_voices(()) == {}
