"""There are enough speakers, and those held out are never trained on."""

from cookbook.ming_mini.speakers import PRESETS, held_out_speakers, training_speakers


def test_more_than_a_hundred_speakers_are_trained_on() -> None:
    names = [speaker.name for speaker in training_speakers()]
    assert len(names) == len(set(names)) >= 100
    assert training_speakers()[: len(PRESETS)] == PRESETS


def test_ten_speakers_are_held_out() -> None:
    held_out = held_out_speakers()
    assert len(held_out) == 10
    assert not {one.name for one in held_out} & {one.name for one in training_speakers()}
    assert {one.engine for one in held_out} == {"flite", "espeak"}
