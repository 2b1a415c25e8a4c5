"""Takes of one rendering: the melody stays, and speaker and manner change what they should."""

from dataclasses import replace

import numpy as np
import pytest

from cookbook.ming_mini.synthesize import LOUDNESS
from cookbook.ming_mini.vocoder import FRAME_SECONDS, RATE, Analysis, find_pitch
from cookbook.ming_mini_2.voices import synthesize
from cookbook.ming_mini_2.voices.manner import PACES, Manner
from cookbook.ming_mini_2.voices.melody import measure_variation, steady_semitones
from cookbook.ming_mini_2.voices.pulses import LATENT
from cookbook.ming_mini_2.voices.speakers import PRESETS, VoiceSpeaker
from cookbook.ming_mini_2.voices.synthesize import (
    PAD,
    Form,
    SpeechJob,
    Take,
    make_clips,
    make_recording,
    make_take,
    scale_formants,
)
from tests.cookbook.ming_mini_2.voices.conftest import glide

pytest.importorskip("pyworld", reason="pitch is analysed by WORLD")
PRESET = PRESETS[0]


@pytest.fixture
def analysis() -> Analysis:
    return glide(2.0, 180, 110)


@pytest.mark.parametrize(("form", "tolerance"), [("free", 0.1), ("locked", 0.25)])
def test_the_melody_stays(analysis: Analysis, form: Form, tolerance: float) -> None:
    clip = make_take(analysis, Take(PRESET), form)
    assert len(clip) % LATENT == 0
    wanted, found = (measure_variation(one) for one in (analysis.pitch, find_pitch(clip, RATE)))
    assert wanted is not None
    assert found == pytest.approx(wanted, rel=tolerance)


def test_a_variant_is_higher_and_so_is_a_high_voice(analysis: Analysis) -> None:
    def median(take: Take) -> float:
        return float(
            np.median(steady_semitones(find_pitch(make_take(analysis, take, "free"), RATE)))
        )

    plain = median(Take(PRESET))
    variant = median(Take(VoiceSpeaker("small", PRESET.source, 4.0, 1.1)))
    assert variant - plain == pytest.approx(4, abs=0.5)
    assert median(Take(PRESET, Manner(pitch="low"))) - plain == pytest.approx(-4, abs=0.5)


def test_a_monotone_has_little_melody_and_a_whisper_no_voice(analysis: Analysis) -> None:
    flat = make_take(analysis, Take(PRESET, Manner(style="monotone")), "free")
    variation = measure_variation(find_pitch(flat, RATE))
    assert variation is not None
    assert variation < 0.6
    whisper = make_take(analysis, Take(PRESET, Manner(style="whisper")), "free")
    voiced = np.mean(find_pitch(whisper, RATE) > 0)
    assert voiced < 0.2 < np.mean(find_pitch(flat, RATE) > 0)


def test_a_quiet_take_is_quieter(analysis: Analysis) -> None:
    def level(take: Take) -> float:
        return float(np.sqrt(np.mean(make_take(analysis, take, "free")[PAD:-PAD] ** 2)))

    assert level(Take(PRESET)) == pytest.approx(LOUDNESS, rel=0.05)
    assert level(Take(PRESET, Manner(volume="low"))) < 0.5 * LOUDNESS


def test_what_has_no_voice_is_the_own_sound_of_the_teacher() -> None:
    """Between two vowels is a hiss: the same samples where the formants are, noise elsewhere."""
    speech = glide(1.5, 180, 110)
    pitch = speech.pitch.copy()
    pitch[100:200] = 0
    analysis = replace(speech, pitch=pitch)
    wave = np.random.default_rng(1).normal(0, 0.05, int(1.5 * RATE))
    place = slice(PAD + int(0.6 * RATE), PAD + int(0.9 * RATE))

    def likeness(take: Take) -> float:
        clip = make_take(analysis, take, "free", wave)[place]
        return float(np.corrcoef(clip, wave[place.start - PAD : place.stop - PAD])[0, 1])

    assert likeness(Take(PRESET)) > 0.99
    assert likeness(Take(PRESET, Manner(pitch="high"))) > 0.99
    assert abs(likeness(Take(replace(PRESET, size=1.1)))) < 0.1
    assert abs(likeness(Take(PRESET, Manner(style="whisper")))) < 0.1


def test_formants_are_stretched() -> None:
    envelope = np.full((3, 101), 1e-6)
    envelope[:, 40] = 1.0
    np.testing.assert_array_equal(scale_formants(envelope, 1.25).argmax(1), [50] * 3)


def test_one_rendering_gives_every_take(
    analysis: Analysis, monkeypatch: pytest.MonkeyPatch
) -> None:
    rendered = []

    def speak(text: str, source: object, pace: float) -> tuple[np.ndarray, float]:
        rendered.append((text, pace))
        return make_take(analysis, Take(PRESET), "free")[PAD:-PAD], RATE

    monkeypatch.setattr(synthesize, "speak", speak)
    fast = Manner(speed="fast")
    takes = (Take(PRESET, fast), Take(replace(PRESET, name="other", semitones=3.0), fast))
    clips = make_clips(SpeechJob("Hello.", takes), "free")
    assert rendered == [("Hello.", PACES["fast"])]
    assert [clip.take for clip in clips] == list(takes)
    assert not np.array_equal(clips[0].samples, clips[1].samples)
    natural = make_clips(SpeechJob("Hello.", takes[:1]), "natural")
    assert len(natural[0].samples) % LATENT == 0


def test_takes_of_different_sources_and_changed_natural_takes_are_refused(
    analysis: Analysis, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match="one source"):
        make_clips(SpeechJob("Hello.", (Take(PRESETS[0]), Take(PRESETS[1]))), "free")
    speech = make_take(analysis, Take(PRESET), "free")
    monkeypatch.setattr(synthesize, "speak", lambda text, source, pace: (speech, RATE))
    with pytest.raises(ValueError, match="cannot be changed"):
        make_clips(SpeechJob("Hello.", (Take(PRESET, Manner(pitch="high")),)), "natural")


@pytest.mark.parametrize("speaker", [PRESET, VoiceSpeaker("small", PRESET.source, 4.0, 1.1)])
def test_a_recording_begins_late_and_has_the_same_speech_with_locked_pulses(
    analysis: Analysis, speaker: VoiceSpeaker
) -> None:
    wave = make_take(analysis, Take(PRESET), "free")[PAD:-PAD]
    early, late = (make_recording(analysis, Take(speaker, late=one), wave) for one in (0, 8))
    for one in (early, late):
        assert len(one.samples) == len(one.locked)
        assert len(one.locked) % LATENT == 0
        free, locked = (
            np.median(steady_semitones(find_pitch(samples / 32767, RATE)))
            for samples in (one.samples, one.locked)
        )
        assert free == pytest.approx(locked, abs=0.7)

    def begin(samples: np.ndarray) -> int:
        return int(np.flatnonzero(np.abs(samples) > 300)[0])

    shift = begin(late.samples) - begin(early.samples)
    assert shift == pytest.approx(8 * FRAME_SECONDS * RATE, abs=RATE // 50)


def test_a_recording_of_an_unchanged_voice_is_the_sound_itself(analysis: Analysis) -> None:
    wave = make_take(analysis, Take(PRESET), "free")[PAD:-PAD]
    made = make_recording(analysis, Take(PRESET, late=0), wave)
    likeness = np.corrcoef(made.samples[PAD:-PAD][: len(wave)], wave[: len(made.samples) - 2 * PAD])
    assert likeness[0, 1] > 0.99
    assert np.corrcoef(made.samples, made.locked)[0, 1] < 0.9
