"""Small models in the next Ming-mini's layout, made-up words, and a made-up voice."""

from dataclasses import replace

import numpy as np
import pytest

from cookbook.ming_mini.layout import configurations
from cookbook.ming_mini.lexicon import Lexicon
from cookbook.ming_mini.vocoder import FRAME_SECONDS, Analysis
from cookbook.ming_mini_2.voices.layout import VOICES, prompt_tokenizer
from cookbook.ming_mini_2.voices.manner import Manner
from cookbook.ming_mini_2.voices.speakers import PRESETS
from cookbook.ming_mini_2.voices.synthesize import (
    ANALYSIS_RATE,
    Recording,
    Take,
    VoiceClip,
)
from sglang_omni.models.ming.config import TalkerConfig, VAEConfig
from sglang_omni.models.ming.speech.caption import Caption, render_caption
from sglang_omni.models.ming.speech.prompt import PromptTokenizer
from tests.cookbook.conftest import hum

SLOW = Manner(speed="slow")
Configs = tuple[TalkerConfig, VAEConfig]


@pytest.fixture(scope="session")
def voice_configs() -> Configs:
    """The configurations, narrower."""
    talker, vae = configurations(VOICES)
    llm = replace(talker.llm, hidden_size=64, intermediate_size=96, num_hidden_layers=3)
    flow = replace(talker.flow, hidden_size=48, depth=2, num_heads=2)
    aggregator = replace(talker.aggregator, hidden_size=32, depth=1, num_heads=2)
    encoder, decoder = (
        replace(side, backbone=replace(side.backbone, hidden_size=64, intermediate_size=64))
        for side in (vae.encoder, vae.decoder)
    )
    small_vae = replace(vae, encoder=encoder, decoder=decoder)
    return replace(talker, llm=llm, flow=flow, aggregator=aggregator), small_vae


@pytest.fixture(scope="session")
def voice_tokenizer() -> PromptTokenizer:
    return prompt_tokenizer()


@pytest.fixture
def lexicon() -> Lexicon:
    return Lexicon(
        nouns=("house", "garden", "river", "letter"),
        verbs=("open", "see", "move"),
        adjectives=("old", "green", "quiet"),
        adverbs=("soon", "often"),
        phrases=("the letter came late", "she opened the old door slowly"),
        definitions=("a place where people live and work",),
    )


def glide(seconds: float, first_hz: float, last_hz: float) -> Analysis:
    """The analysis of a made-up voice: pitch from one to the other, 0.1 s of noise at both ends."""
    frames = round(seconds / FRAME_SECONDS)
    pitch = np.geomspace(first_hz, last_hz, frames)
    pitch[:20] = pitch[-20:] = 0
    hertz = np.linspace(0, ANALYSIS_RATE / 2, 513)
    formants = sum(np.exp(-(((hertz - centre) / 150) ** 2)) for centre in (600, 1200, 2500))
    envelope = np.tile(1e-4 + formants * 1e-2, (frames, 1))
    return Analysis(envelope, pitch, ANALYSIS_RATE)


@pytest.fixture
def voice_clips() -> list[VoiceClip]:
    """Four hums of two presets; the third follows an instruction, the others have recordings."""
    takes = [
        Take(PRESETS[0]),
        Take(PRESETS[0]),
        Take(PRESETS[1], SLOW, render_caption(Caption(speed="slow"))),
        Take(PRESETS[1]),
    ]
    texts = ("Hi.", "Good morning.", "Three red circles.", "The cat is on the mat.")
    hums = [hum(1.0 + number / 4, 110 * (1 + number)) for number in range(len(takes))]
    return [
        VoiceClip(text, take, sound, None if take.instruction else Recording(sound[::-1], sound))
        for text, take, sound in zip(texts, takes, hums, strict=True)
    ]
