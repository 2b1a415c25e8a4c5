"""What the evaluation compares a model with: the teachers' own speech."""

import numpy as np
import pytest

from cookbook.ming_mini.vocoder import RATE
from cookbook.ming_mini_2.evaluation import teachers
from cookbook.ming_mini_2.voices.speakers import PRESETS, Source, VoiceSpeaker

TEACHER_RATE = 22_050


def test_a_smaller_voice_is_higher_and_as_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """A teacher that hums at 150 Hz for 1.2 s, or for as long as a pace makes of it."""

    def speak(text: str, source: Source, pace: float) -> tuple[np.ndarray, float]:
        times = np.arange(int(1.2 / pace * TEACHER_RATE)) / TEACHER_RATE
        return np.sin(2 * np.pi * 150 * times), TEACHER_RATE

    monkeypatch.setattr(teachers, "speak", speak)
    small = VoiceSpeaker("small", PRESETS[0].source, 3.0, 1.2)
    made = teachers.natural_recording("A hum.", small)
    assert made.dtype == np.float32
    assert len(made) / RATE == pytest.approx(1.2, abs=0.01)
    spectrum = np.abs(np.fft.rfft(made * np.hanning(len(made))))
    assert spectrum.argmax() * RATE / len(made) == pytest.approx(180, abs=1)
