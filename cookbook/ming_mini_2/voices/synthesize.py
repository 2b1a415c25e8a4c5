"""Speech of the teachers as training clips: one rendering of a text, several takes of it.

A take is a speaker and a manner. Every take of a rendering has its words and its speed; pitch,
formants, melody, whispering and loudness are changed in the analysed speech. What has no voice is
the teacher's own sound in a take with the teacher's formants, and noise in others.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import soxr

from cookbook.ming_mini.synthesize import (
    LOUDNESS,
    SynthesisError,
    finish_clip,
    run_synthesizer,
    to_int16,
    trim,
)
from cookbook.ming_mini.vocoder import (
    FRAME_SECONDS,
    RATE,
    Analysis,
    Excitation,
    analyse,
    clip_length,
    voiced_shares,
)
from cookbook.ming_mini.vocoder import render_pulses as render
from cookbook.ming_mini_2.voices.manner import NEUTRAL, Manner, controls_of
from cookbook.ming_mini_2.voices.melody import (
    SAME_MELODY,
    MelodyChange,
    change_melody,
    fill_unvoiced,
)
from cookbook.ming_mini_2.voices.pulses import LATENT, free_pulses, locked_pulses
from cookbook.ming_mini_2.voices.speakers import Source, VoiceSpeaker
from cookbook.ming_mini_2.voices.teachers import kokoro, piper
from cookbook.ming_mini_2.voices.teachers.phonemes import to_phonemes

Form = Literal["free", "locked", "natural"]
"""How a teacher's speech is made clips of: with free or with locked pulses, or as it was spoken."""

ANALYSIS_RATE = 24_000
EXCITATION = Excitation(top_hz=10_500.0, noise_from_hz=(4000.0, 9000.0))
PULSE_LEVEL = 0.87
"""How loud pulses say a voice, relative to what was analysed: 0.82 to 0.97 in six voices."""
SILENT_POWER = 1e-12
PAD = LATENT
"""Samples of silence before and after the speech; latents begin where the clip's speech does."""


@dataclass(frozen=True)
class Take:
    """Who says a text, and how.

    With `late` there is also a recording, which begins so many frames of 5 ms late: an even number.
    """

    speaker: VoiceSpeaker
    manner: Manner = NEUTRAL
    instruction: str = ""
    late: int | None = None


@dataclass(frozen=True)
class SpeechJob:
    """A text to render once, for takes of the same source and speed."""

    text: str
    takes: tuple[Take, ...]


@dataclass(frozen=True)
class Recording:
    """Speech as people upload it, and the same with locked pulses: int16 [n] each, at 44.1 kHz."""

    samples: np.ndarray
    locked: np.ndarray


@dataclass(frozen=True)
class VoiceClip:
    """A text as one take says it: `samples` int16 [n] at 44.1 kHz."""

    text: str
    take: Take
    samples: np.ndarray
    recording: Recording | None = None


def make_clips(job: SpeechJob, form: Form) -> list[VoiceClip]:
    """Return the clips of a job.

    Raises:
        SynthesisError: The teacher said nothing, or the text does not suit it.
    """
    first = job.takes[0]
    pace = controls_of(first.manner).pace
    if any(take.speaker.source != first.speaker.source for take in job.takes):
        raise ValueError("all takes of a job must have one source")
    speech, rate = speak(job.text, first.speaker.source, pace)
    if form == "natural":
        return [_natural_clip(job.text, take, speech, rate) for take in job.takes]
    analysis, wave = analyse_speech(speech, rate), soxr.resample(speech, rate, RATE)
    return [
        VoiceClip(
            job.text,
            take,
            to_int16(make_take(analysis, take, form, wave)),
            None if take.late is None else make_recording(analysis, take, wave),
        )
        for take in job.takes
    ]


def analyse_speech(speech: np.ndarray, rate: float) -> Analysis:
    """Return the analysis of samples [n] at a rate in Hz."""
    return analyse(soxr.resample(speech, rate, ANALYSIS_RATE), ANALYSIS_RATE)


def speak(text: str, source: Source, pace: float = 1.0) -> tuple[np.ndarray, float]:
    """Return a teacher's own speech without silence around it: samples [n], and their rate in Hz.

    Raises:
        SynthesisError: The teacher said nothing, or the text does not suit it.
    """
    try:
        samples, rate = _render(text, source, pace)
    except (ValueError, RuntimeError) as error:
        raise SynthesisError(f"{source.teacher}: {error}") from error
    speech = trim(samples)
    if len(speech) < rate / 20:
        raise SynthesisError(f"{source.teacher} said nothing")
    return speech, rate


def _render(text: str, source: Source, pace: float) -> tuple[np.ndarray, float]:
    if source.teacher == "piper":
        return piper.speak(to_phonemes(text), pace), piper.RATE
    if source.teacher == "kokoro":
        return kokoro.speak(to_phonemes(text), source.mix, pace), kokoro.RATE
    assert source.formant is not None
    speaker = source.formant
    # flite stretches durations, espeak-ng counts words per minute.
    paced = replace(speaker, pace=speaker.pace / pace, speed=round(speaker.speed * pace))
    samples, rate = run_synthesizer(text, paced)
    return samples, rate * speaker.size


def make_take(
    analysis: Analysis, take: Take, form: Form, wave: np.ndarray | None = None
) -> np.ndarray:
    """Return the clip of a take, float32 [n] at 44.1 kHz; n is a multiple of a latent.

    `wave` is the speech that was analysed, at 44.1 kHz.
    """
    controls, speaker = controls_of(take.manner), take.speaker
    change = replace(controls.melody, semitones=controls.melody.semitones + speaker.semitones)
    varied = vary(analysis, change, speaker.size, controls.is_voiced)
    if speaker.size != 1.0 or not controls.is_voiced:
        wave = None
    return finish_clip(resynthesise(varied, form, wave), LOUDNESS * controls.gain, PAD)


def make_recording(analysis: Analysis, take: Take, wave: np.ndarray) -> Recording:
    """Return the recording of a take, which begins anywhere in a latent.

    It is `wave`, the teacher's own sound, where the take has the teacher's voice; the pulses of
    another voice are free.
    """
    frames = take.late or 0
    later = _delay(analysis, frames)
    sound = np.pad(wave, (round(frames * FRAME_SECONDS * RATE), 0)).astype(np.float32)
    locked = make_take(later, take, "locked", sound)
    if not is_unchanged(take):
        return Recording(to_int16(make_take(later, take, "free", sound)), to_int16(locked))
    count = len(locked) - 2 * PAD
    fitted = np.pad(sound, (0, max(0, count - len(sound))))[:count]
    gain = controls_of(take.manner).gain
    return Recording(to_int16(finish_clip(fitted, LOUDNESS * gain, PAD)), to_int16(locked))


def _delay(analysis: Analysis, frames: int) -> Analysis:
    """Return an analysis after so many frames of silence."""
    quiet = np.full((frames, analysis.envelope.shape[1]), SILENT_POWER)
    return replace(
        analysis,
        envelope=np.concatenate((quiet, analysis.envelope)),
        pitch=np.concatenate((np.zeros(frames), analysis.pitch)),
    )


def vary(analysis: Analysis, change: MelodyChange, size: float, is_voiced: bool = True) -> Analysis:
    """Return an analysis with another melody, and formants at `size` times their frequency."""
    pitch = change_melody(analysis.pitch, change)
    if not is_voiced:
        pitch = np.zeros_like(pitch)
    return replace(analysis, envelope=scale_formants(analysis.envelope, size), pitch=pitch)


def scale_formants(envelope: np.ndarray, size: float) -> np.ndarray:
    """Return envelopes [frames, bins] stretched over frequency by a factor."""
    if size == 1.0:
        return envelope
    place = np.minimum(np.arange(envelope.shape[1]) / size, envelope.shape[1] - 1)
    low = np.minimum(place.astype(int), envelope.shape[1] - 2)
    share = place - low
    logs = np.log(envelope)
    return np.exp(logs[:, low] * (1 - share) + logs[:, low + 1] * share)


def resynthesise(analysis: Analysis, form: Form, wave: np.ndarray | None = None) -> np.ndarray:
    """Return speech of an analysis: float32 [n] at 44.1 kHz, n a multiple of a latent.

    What has no voice is taken from `wave`, the speech that was analysed, or is noise without it.
    """
    count = clip_length(analysis, LATENT)
    # A whisper has no pulses, so that any pitch serves.
    voiced = (analysis.pitch > 0).any()
    pitch = fill_unvoiced(analysis.pitch) if voiced else np.full(len(analysis.pitch), 100.0)
    pulses = (locked_pulses if form == "locked" else free_pulses)(pitch, count)
    spoken = render(analysis, pulses, replace(EXCITATION, hiss=wave is None), LATENT)
    if wave is not None:
        own = PULSE_LEVEL * unvoiced(analysis, wave)[:count]
        spoken[: len(own)] += own
    return spoken


def unvoiced(analysis: Analysis, wave: np.ndarray) -> np.ndarray:
    """Return what has no voice of the analysed speech [n] at 44.1 kHz."""
    frame = np.arange(len(wave)) / (RATE * FRAME_SECONDS)
    shares = np.interp(frame, np.arange(len(analysis.pitch)), voiced_shares(analysis))
    return wave * np.sqrt(1 - shares)


def is_unchanged(take: Take) -> bool:
    """Return whether a take has the teacher's own voice and melody."""
    controls, speaker = controls_of(take.manner), take.speaker
    own_voice = (speaker.semitones, speaker.size) == (0.0, 1.0)
    return own_voice and controls.melody == SAME_MELODY and controls.is_voiced


def _natural_clip(text: str, take: Take, speech: np.ndarray, rate: float) -> VoiceClip:
    """Return the teacher's own speech as a clip. Raises `ValueError` for any other take."""
    if not is_unchanged(take):
        raise ValueError("the teacher's own speech cannot be changed")
    gain = controls_of(take.manner).gain
    wave = soxr.resample(speech, rate, RATE).astype(np.float32)
    wave = np.pad(wave, (0, -len(wave) % LATENT))
    return VoiceClip(text, take, to_int16(finish_clip(wave, LOUDNESS * gain, PAD)))
