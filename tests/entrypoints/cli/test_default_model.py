"""Without `--model-path` there is Ming-mini: it answers, and a recogniser hears its words."""

import time
from pathlib import Path

import numpy as np
import pytest
import torch

from cookbook.ming_mini import grammar
from cookbook.ming_mini.evaluation.speech import CheckpointSpeaker
from cookbook.ming_mini.sentences import commands, punctuate
from cookbook.ming_mini.thinker.answer import Answerer
from cookbook.ming_mini.vocoder import RATE
from cookbook.ming_mini_2.voices.speakers import PRESETS
from measurement.pocketsphinx_recogniser import Recogniser, spoken_words
from sglang_omni.engines.speech.contract import TalkerSettings
from sglang_omni.entrypoints.startup.checkpoint import MING_MINI, find_checkpoint
from sglang_omni.models.ming.speech.modules import load_modules
from sglang_omni.protocol.errors import CheckpointError


def test_a_given_folder_must_hold_a_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"no config\.json"):
        find_checkpoint(tmp_path)


def test_ming_mini_is_whole() -> None:
    assert find_checkpoint(None) == MING_MINI
    size = sum(path.stat().st_size for path in MING_MINI.rglob("*") if path.is_file())
    assert 40e6 < size < 64e6


@pytest.mark.alone
def test_both_halves_load_in_five_seconds() -> None:
    began = time.monotonic()
    find_checkpoint(None)
    Answerer(MING_MINI)
    load_modules(MING_MINI)
    assert time.monotonic() - began < 5.0


@pytest.fixture(scope="module")
def speech() -> CheckpointSpeaker:
    settings = TalkerSettings(MING_MINI, slots=1)
    return CheckpointSpeaker(
        load_modules(settings.checkpoint, settings.device, settings.dtype), settings
    )


@pytest.mark.extended
@pytest.mark.parametrize("text", ["a", "A", "I", "B.", "hi", "OK"])
def test_one_or_two_letters_are_heard(speech: CheckpointSpeaker, text: str) -> None:
    with torch.no_grad():
        for voice in PRESETS:
            samples = speech.say(text, voice.name, seed=7)
            assert np.abs(samples).max() > 0.1
            assert len(samples) < 1.5 * RATE, "and nothing after them"


@pytest.mark.parametrize("text", ["A" * 300, "ha" * 200, "qwrtpsdfg" * 40])
def test_what_is_no_language_is_spoken_for_seconds_only(
    speech: CheckpointSpeaker, text: str
) -> None:
    with torch.no_grad():
        assert 0.5 * RATE < len(speech.say(text, PRESETS[0].name, seed=7)) < 7.0 * RATE


def test_unseen_commands_are_understood(speech: CheckpointSpeaker) -> None:
    with torch.no_grad():
        hear = Recogniser(grammar.jsgf()).words
        right = sum(
            hear(speech.say(punctuate(text), PRESETS[number % len(PRESETS)].name, seed=3))
            == spoken_words(text)
            for number, text in enumerate(commands(8, 3, "held_out"))
        )
    # Of 100 others 86 are.
    assert right >= 7
