"""Clips in the steady voices of the first recipe, which the thinker must understand as well.

They are those that its talker learnt: speech of flite and espeak-ng at one pitch, in half of the
clips copied by the bundled VAE, as all that a talker says is. The rest keeps the synthesizer's own
melody, or has the steady pitch without the copy.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from random import Random

import numpy as np
import torch
import torch.nn.functional as F

from cookbook.ming_mini.lexicon import Lexicon
from cookbook.ming_mini.sentences import Split
from cookbook.ming_mini.speakers import PRESETS as STEADY_PRESETS
from cookbook.ming_mini.speakers import Speaker, training_speakers
from cookbook.ming_mini.synthesize import synthesize, synthesize_natural, to_int16
from cookbook.ming_mini_2.voices.jobs import mix_texts
from cookbook.ming_mini_2.voices.speakers import Source, VoiceSpeaker
from cookbook.ming_mini_2.voices.synthesize import SpeechJob, Take, VoiceClip
from cookbook.ming_mini_2.voices.texts import draw_texts
from sglang_omni.entrypoints.startup.checkpoint import MING_MINI
from sglang_omni.models.ming.speech.vae import AudioVAE, load_vae

STEADY_PRESET_SHARE = 0.7
"""Of the clips, in the four voices of that talker; all others in their variants."""
COPIED_SHARE, OWN_MELODY_SHARE = 0.5, 0.25


def steady_jobs(
    seed: int, lexicon: Lexicon, split: Split = "train", given: Sequence[str] = ()
) -> Iterator[SpeechJob]:
    """Yield jobs forever, of one take each; texts as in `draw_jobs`."""
    rng = Random(f"steady jobs {seed}")
    for text in mix_texts(draw_texts(seed, lexicon, split), given, rng):
        preset = rng.random() < STEADY_PRESET_SHARE
        speaker = rng.choice(STEADY_PRESETS if preset else training_speakers())
        source = Source("formant", formant=speaker)
        yield SpeechJob(text, (Take(VoiceSpeaker(speaker.name, source)),))


def make_steady_clips(job: SpeechJob) -> list[VoiceClip]:
    """Return the clips of a job of `steady_jobs`. Raises `SynthesisError`."""
    return [
        VoiceClip(job.text, take, to_int16(speak_steadily(job.text, take.speaker.source.formant)))
        for take in job.takes
        if take.speaker.source.formant
    ]


def speak_steadily(text: str, speaker: Speaker) -> np.ndarray:
    """Return a clip of a text: float32 [n] at 44.1 kHz. Text and speaker determine its kind.

    Raises:
        SynthesisError: The synthesizer failed or said nothing.
        CheckpointError: The bundled weights are not unpacked.
    """
    draw = Random(f"{text} {speaker.name}").random()
    if draw < OWN_MELODY_SHARE:
        return synthesize_natural(text, speaker)
    steady = synthesize(text, speaker)
    return copy_by_vae(_bundled_vae(), steady) if draw > 1 - COPIED_SHARE else steady


@torch.no_grad()
def copy_by_vae(vae: AudioVAE, samples: np.ndarray) -> np.ndarray:
    """Return samples [n] as the VAE encodes and decodes them."""
    wave = F.pad(torch.from_numpy(samples), (0, -len(samples) % vae.config.samples_per_latent))
    return vae.decoder(vae.encoder(wave[None]).mean)[0, : len(samples)].numpy()


@cache
def _bundled_vae() -> AudioVAE:
    """Load the VAE once in a process, which has one core."""
    torch.set_num_threads(1)
    return load_vae(MING_MINI / "talker" / "vae", torch.device("cpu"), torch.float32)
