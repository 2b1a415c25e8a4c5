"""Ways to speak that the talker learns by instruction, as changes that the corpus can make.

The speed is the teacher's own control; pitch, its range and whispering are made of the analysed
speech, volume of the finished clip.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from random import Random
from typing import Literal, get_args

from cookbook.ming_mini_2.voices.melody import SAME_MELODY, MelodyChange

Speed = Literal["slow", "medium", "fast"]
Level = Literal["low", "medium", "high"]
Emotion = Literal["happy", "sad"]
Style = Literal["whisper", "monotone", "lively"]

PACES: Mapping[str, float] = {"slow": 0.8, "medium": 1.0, "fast": 1.25}
SEMITONES: Mapping[str, float] = {"low": -4.0, "medium": 0.0, "high": 4.0}
"""Piper's melody differs by up to three semitones from one rendering of a text to the next."""
GAINS: Mapping[str, float] = {"low": 0.4, "medium": 1.0, "high": 1.6}


@dataclass(frozen=True)
class Manner:
    """What an instruction asks for; None leaves a feature to the voice."""

    speed: Speed | None = None
    pitch: Level | None = None
    volume: Level | None = None
    emotion: Emotion | None = None
    style: Style | None = None

    @property
    def is_neutral(self) -> bool:
        """Return whether nothing is asked for."""
        return not any(asdict(self).values())


NEUTRAL = Manner()


@dataclass(frozen=True)
class Controls:
    """What a manner changes: factor of the speed, melody, factor of the loudness, voicing."""

    pace: float = 1.0
    melody: MelodyChange = SAME_MELODY
    gain: float = 1.0
    is_voiced: bool = True


EMOTIONS: Mapping[str, Controls] = {
    "happy": Controls(1.1, MelodyChange(2.0, 1.5), 1.15),
    "sad": Controls(0.85, MelodyChange(-1.5, 0.55), 0.7),
}
STYLES: Mapping[str, Controls] = {
    "whisper": Controls(0.95, gain=0.5, is_voiced=False),
    "monotone": Controls(melody=MelodyChange(0.0, 0.15)),
    "lively": Controls(1.05, MelodyChange(0.5, 1.6)),
}


def controls_of(manner: Manner) -> Controls:
    """Return the controls of a manner: those of its features together."""
    parts = [
        Controls(PACES[manner.speed or "medium"]),
        Controls(melody=MelodyChange(SEMITONES[manner.pitch or "medium"])),
        Controls(gain=GAINS[manner.volume or "medium"]),
        EMOTIONS[manner.emotion] if manner.emotion else Controls(),
        STYLES[manner.style] if manner.style else Controls(),
    ]
    together = parts[0]
    for part in parts[1:]:
        together = _combine(together, part)
    return together


def _combine(one: Controls, other: Controls) -> Controls:
    melody = MelodyChange(
        one.melody.semitones + other.melody.semitones, one.melody.range * other.melody.range
    )
    voiced = one.is_voiced and other.is_voiced
    return Controls(one.pace * other.pace, melody, one.gain * other.gain, voiced)


FEATURES = tuple(field.name for field in fields(Manner))
CHOICES = {
    "speed": get_args(Speed),
    "pitch": get_args(Level),
    "volume": get_args(Level),
    "emotion": get_args(Emotion),
    "style": get_args(Style),
}
SECOND_SHARE = 0.3
"""The share of manners that ask for two features."""


def draw_manner(rng: Random) -> Manner:
    """Draw a manner that asks for one feature or two; pitch is not asked of a whisper."""
    features = rng.sample(FEATURES, 2 if rng.random() < SECOND_SHARE else 1)
    manner = Manner(**{name: rng.choice(CHOICES[name]) for name in features})
    if manner.style == "whisper" and (manner.pitch or manner.emotion):
        return Manner(style="whisper")
    return manner


def manner_from_json(values: Mapping[str, str]) -> Manner:
    """Return the manner of `manner_to_json`. Raises `ValueError` for an unknown value."""
    for name, value in values.items():
        if value not in CHOICES.get(name, ()):
            raise ValueError(f"{name}: {value} is not known")
    return Manner(**values)  # type: ignore[arg-type]


def manner_to_json(manner: Manner) -> dict[str, str]:
    """Return the features that a manner asks for."""
    return {name: value for name, value in asdict(manner).items() if value is not None}
