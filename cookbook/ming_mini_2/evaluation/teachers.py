"""What the teachers say themselves: the bound of what a model of them can reach."""

from functools import lru_cache

import numpy as np
import soxr

from cookbook.ming_mini.vocoder import RATE
from cookbook.ming_mini_2.voices.manner import NEUTRAL, Manner
from cookbook.ming_mini_2.voices.speakers import VoiceSpeaker
from cookbook.ming_mini_2.voices.synthesize import (
    Form,
    SpeechJob,
    Take,
    analyse_speech,
    make_clips,
    make_take,
    speak,
)


@lru_cache(maxsize=256)
def teacher_speech(text: str, speaker: VoiceSpeaker) -> np.ndarray:
    """Return a text as the teacher of a speaker says it: float32 [n] at 44.1 kHz.

    A speaker whose pitch or formants are changed is spoken again, as in the corpus.

    Raises:
        SynthesisError: The teacher said nothing.
    """
    if (speaker.semitones, speaker.size) != (0.0, 1.0):
        return resynthesised_speech(text, speaker)
    samples, rate = speak(text, speaker.source)
    return soxr.resample(samples, rate, RATE).astype(np.float32)


@lru_cache(maxsize=256)
def resynthesised_speech(text: str, speaker: VoiceSpeaker) -> np.ndarray:
    """Return a text as `teacher_speech` does, but of a vocoder whoever speaks: float32 [n].

    Raises:
        SynthesisError: The teacher said nothing.
    """
    samples, rate = speak(text, speaker.source)
    wave = soxr.resample(samples, rate, RATE).astype(np.float32)
    return make_take(analyse_speech(samples, rate), Take(speaker), "free", wave)


@lru_cache(maxsize=256)
def natural_recording(text: str, speaker: VoiceSpeaker) -> np.ndarray:
    """Return a text in a voice of the speaker's size without any vocoder: float32 [n] at 44.1 kHz.

    The teacher's own sound is played at another rate, which moves pitch and formants alike, and is
    spoken slower or faster so that its speed stays.

    Raises:
        SynthesisError: The teacher said nothing.
    """
    samples, rate = speak(text, speaker.source, 1 / speaker.size)
    return soxr.resample(samples, rate * speaker.size, RATE).astype(np.float32)


def teacher_clip(
    text: str, speaker: VoiceSpeaker, form: Form, manner: Manner = NEUTRAL
) -> np.ndarray:
    """Return a text as a clip of the corpus has it, in a manner: float32 [n] at 44.1 kHz.

    Raises:
        SynthesisError: The teacher said nothing.
    """
    (made,) = make_clips(SpeechJob(text, (Take(speaker, manner),)), form)
    return made.samples.astype(np.float32) / 32767
