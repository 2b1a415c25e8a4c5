"""Instructions are what the server makes of a request, and training has no held-out ones."""

import json
from random import Random

import numpy as np
import pytest
import torch

from cookbook.ming_mini.batches import prompt_frame, row
from cookbook.ming_mini.sentences import Split
from cookbook.ming_mini.utterances import Utterance
from cookbook.ming_mini_2.voices.instructions import (
    ADVERBS,
    draw_free_text,
    draw_instruction,
)
from cookbook.ming_mini_2.voices.manner import (
    CHOICES,
    NEUTRAL,
    Manner,
    controls_of,
    draw_manner,
    manner_from_json,
    manner_to_json,
)
from sglang_omni.models.ming.speech.model import build_speech_prompt
from sglang_omni.models.ming.speech.prompt import PromptTokenizer
from sglang_omni.models.ming.speech.voices import VoicePrompt
from sglang_omni.models.ming.speech_text import MingSpeechText
from sglang_omni.models.speech_text import SpeechStyle
from sglang_omni.protocol.speech import SpeechOptions

MAX_ROWS = 90
SPLITS: tuple[Split, Split] = ("train", "held_out")


def served_instruction(value: object) -> str:
    """Return what the server gives the talker for the field `instructions` of a request."""
    options = SpeechOptions.model_validate({"instructions": value})
    assert options.instructions is not None
    rendered = MingSpeechText().style("speech", options.instructions.model_dump()).instruction
    assert rendered is not None
    return rendered


def test_fields_and_free_texts_are_rendered_as_the_server_does() -> None:
    rng = Random(0)
    rendered = {draw_instruction(draw_manner(rng), rng) for _ in range(300)}
    free = 0
    for instruction in rendered:
        caption = json.loads(instruction)["audio_sequence"][0]
        if caption["风格"]:
            free += 1
            fields = {"speed": caption["语速"], "pitch": caption["基频"], "volume": caption["音量"]}
            given = fields | {"emotion": caption["情感"], "style": caption["风格"]}
            assert served_instruction(given) == instruction
    assert 0 < free < len(rendered)
    assert served_instruction({"speed": "slow"}) in rendered
    assert served_instruction({"pitch": "high"}) in rendered


def test_no_training_text_is_held_out() -> None:
    rng = Random(1)
    manners = [draw_manner(rng) for _ in range(300)]
    trained, held = (
        {draw_free_text(manner, rng, split).lower().rstrip(".") for manner in manners}
        for split in SPLITS
    )
    assert len(trained) > 100 < len(held)
    assert not trained & held


def test_every_value_can_be_asked_for_in_words() -> None:
    assert set(ADVERBS) == {(name, value) for name, all_ in CHOICES.items() for value in all_}


def test_a_neutral_manner_has_no_instruction_and_changes_nothing() -> None:
    with pytest.raises(ValueError, match="neutral"):
        draw_instruction(NEUTRAL, Random(0))
    assert controls_of(NEUTRAL) == controls_of(Manner(speed="medium", pitch="medium"))


def test_features_combine() -> None:
    controls = controls_of(Manner(speed="fast", pitch="low", emotion="sad"))
    assert controls.pace == pytest.approx(1.25 * 0.85)
    assert controls.melody.semitones == pytest.approx(-5.5)
    assert controls.is_voiced
    assert not controls_of(Manner(style="whisper")).is_voiced


def test_manners_survive_json_and_unknown_values_do_not() -> None:
    rng = Random(2)
    for _ in range(100):
        manner = draw_manner(rng)
        assert manner_from_json(manner_to_json(manner)) == manner
    with pytest.raises(ValueError, match="speed: warp"):
        manner_from_json({"speed": "warp"})


def test_a_caption_is_few_tokens_and_reads_back(voice_tokenizer: PromptTokenizer) -> None:
    rng = Random(4)
    for _ in range(200):
        assert len(voice_tokenizer.encode(draw_instruction(draw_manner(rng), rng))) < MAX_ROWS
    assert len(voice_tokenizer.encode(served_instruction({"speed": "slow"}))) == 8


def test_the_training_row_of_an_instruction_is_the_servers_prompt(
    voice_tokenizer: PromptTokenizer,
) -> None:
    text, instruction = "Good evening.", served_instruction("Speak slowly, please.")
    voice = VoicePrompt("me", "It is late.", torch.zeros(20, 64), torch.zeros(5, 8), None)
    said, prompt = (
        Utterance(0, first, 5, np.array(voice_tokenizer.encode(words)), 1.0, ids)
        for first, words, ids in (
            (10, text, np.array(voice_tokenizer.encode(instruction))),
            (1, "It is late.", np.empty(0, dtype=np.int64)),
        )
    )
    for keeps in (True, False):
        style = SpeechStyle(instruction=instruction)
        wanted = voice_tokenizer.assemble(build_speech_prompt(text, voice, style, keeps))
        built = row(prompt_frame(voice_tokenizer), said, prompt, in_text=keeps)
        assert tuple(built.ids[: len(wanted.ids)]) == wanted.ids
        assert built.audio_row == wanted.audio_row
        assert built.history[-5:].tolist() == [1, 2, 3, 4, 5]
        shown = [1, 2, 3, 4, 5] if keeps else []
        assert built.audio.tolist() == [*shown, 10, 11, 12, 13]
