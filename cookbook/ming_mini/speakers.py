"""The speakers: voices of two free synthesizers, varied in pitch, formants and speed.

flite's voices are models of recordings (clustergen and diphones); playing them at another rate
moves pitch and formants together, like a smaller or larger speaker. espeak-ng synthesises formants
by rule, and its variants change them, breath and pitch.
"""

from dataclasses import dataclass
from itertools import product
from typing import Literal

from cookbook.ming_mini.vocoder import PITCHES


@dataclass(frozen=True)
class Speaker:
    """One parametric speaker.

    `voice` is the synthesizer's voice. `size` is the factor of flite's pitch and formants
    (espeak-ng: 1). `pace` stretches flite's durations before that. `pitch` (0 to 99) and `speed`
    (words per minute) are espeak-ng's. `tone` is the steady pitch in Hz of this speaker in the
    training data.
    """

    name: str
    engine: Literal["flite", "espeak"]
    voice: str
    size: float = 1.0
    pace: float = 1.0
    pitch: int = 50
    speed: int = 160
    tone: float = 100.0


PRESETS = tuple(
    Speaker(name, "flite", voice, tone=tone)
    for name, voice, tone in (
        ("slt", "slt", 200.0),
        ("rms", "rms", 100.0),
        ("awb", "awb", 150.0),
        ("kal", "kal16", 100.0),
    )
)
"""The voices of the packed model, the first its default."""

FLITE_SIZES = (0.84, 0.9, 0.95, 1.06, 1.12, 1.19, 1.26)
ACCENTS = ("en-us", "en-gb", "en-gb-x-rp")
_VARIANTS = """
m1 m2 m3 m4 m5 m6 m7 m8 f1 f2 f3 f4 f5 klatt klatt2 klatt3 adam Alex Alicia Andrea Andy Annie
antonio aunty belinda benjamin boris caleb david Denis ed edward Gene grandma grandpa Henrique
Hugo iven2 john Lee linda Marco Michael Mike norbert pablo paul pedro quincy rob robert sandro
shelby steph steph2 travis victor zac anika max
"""
VARIANTS = _VARIANTS.split()
HELD_OUT_EVERY = 13


def all_variants() -> tuple[Speaker, ...]:
    """Yield every speaker but the presets, in a fixed order."""
    return (*_flite_variants(), *_espeak_variants())


def training_speakers() -> tuple[Speaker, ...]:
    """Return the presets and the variants to train on."""
    kept = (one for number, one in enumerate(all_variants()) if not _is_held_out(number))
    return (*PRESETS, *kept)


def held_out_speakers() -> tuple[Speaker, ...]:
    """Return the first ten variants that no training sees."""
    held = [one for number, one in enumerate(all_variants()) if _is_held_out(number)]
    return tuple(held[:10])


def _is_held_out(number: int) -> bool:
    return number % HELD_OUT_EVERY == HELD_OUT_EVERY // 2


def _flite_variants() -> list[Speaker]:
    """Yield sizes of the preset voices.

    The pace undoes the change of speed, and varies it a little.
    """
    found = []
    for number, (preset, size) in enumerate(product(PRESETS, FLITE_SIZES)):
        pace = size * (0.94, 1.0, 1.08)[number % 3]
        tone = PITCHES[number % len(PITCHES)]
        name = f"{preset.name}-{size}"
        found.append(Speaker(name, "flite", preset.voice, size, pace, tone=tone))
    return found


def _espeak_variants() -> list[Speaker]:
    """Yield two speakers of every variant, with accents, pitches and speeds in turn."""
    found = []
    for number, (variant, turn) in enumerate(product(VARIANTS, range(2))):
        accent = ACCENTS[number % len(ACCENTS)]
        pitch, speed = 35 + 10 * (number % 4) + 5 * turn, (145, 160, 175)[number // 3 % 3]
        name = f"{accent}-{variant}-{turn + 1}"
        found.append(
            Speaker(
                name,
                "espeak",
                f"{accent}+{variant}",
                pitch=pitch,
                speed=speed,
                tone=PITCHES[number // 2 % len(PITCHES)],
            )
        )
    return found
