"""The speakers: six presets with voices of their own, and many variants of every teacher.

A source is a voice of a teacher. A speaker is a source whose pitch and formants may be changed
after its analysis, so that one rendering of a text gives clips of several speakers.
"""

from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Literal

from cookbook.ming_mini.speakers import PRESETS as FORMANT_PRESETS
from cookbook.ming_mini.speakers import Speaker as FormantSpeaker
from cookbook.ming_mini.speakers import all_variants as all_formant_variants
from cookbook.ming_mini_2.voices.teachers.kokoro import TABLES, Mix


@dataclass(frozen=True)
class Source:
    """A voice of a teacher: of Kokoro a mix of tables, of flite and espeak-ng their speaker."""

    teacher: Literal["piper", "kokoro", "formant"]
    mix: Mix = ()
    formant: FormantSpeaker | None = None


@dataclass(frozen=True)
class VoiceSpeaker:
    """One speaker: a source, `semitones` higher, with formants at `size` times their frequency."""

    name: str
    source: Source
    semitones: float = 0.0
    size: float = 1.0


JOE = Source("piper")
UNEVEN_SHARE = 0.7
"""The share of the first table in an uneven mix."""


def mix_of(*tables: str) -> Source:
    """Return the even mix of Kokoro's tables."""
    return Source("kokoro", tuple((table, 1 / len(tables)) for table in tables))


PRESETS = (
    VoiceSpeaker("joan", mix_of("jf_alpha", "jm_kumo")),
    VoiceSpeaker("joe", JOE),
    VoiceSpeaker("alpha", mix_of("jf_alpha")),
    VoiceSpeaker("kumo", mix_of("jm_kumo")),
    VoiceSpeaker("tebukuro", mix_of("jf_tebukuro")),
    VoiceSpeaker("gongitsune", mix_of("jf_gongitsune")),
)
"""The voices of the packed model; the first, and clearest, is its default."""

# Semitones and sizes of the variants of each natural source: a smaller speaker is higher.
CHANGES = (
    (-4.0, 0.88),
    (-2.5, 0.95),
    (-1.0, 0.9),
    (1.5, 1.07),
    (3.0, 1.12),
    (4.5, 1.18),
)
HELD_OUT_EVERY = 9
HELD_OUT_COUNT = 10


def natural_sources() -> tuple[Source, ...]:
    """Return every source of the neural teachers: Piper, the tables, and their mixes.

    Mixes are of two tables evenly, of two unevenly, and of three. The even ones come first, because
    the place in this order says which variants are held out.
    """
    pairs = [mix_of(*pair) for pair in combinations(TABLES, 2)]
    uneven = [
        Source("kokoro", ((first, UNEVEN_SHARE), (second, 1 - UNEVEN_SHARE)))
        for first, second in permutations(TABLES, 2)
    ]
    triples = [mix_of(*triple) for triple in combinations(TABLES, 3)]
    return (JOE, *(mix_of(table) for table in TABLES), *pairs, *uneven, *triples)


def all_variants() -> tuple[VoiceSpeaker, ...]:
    """Return every speaker but the presets, in a fixed order; the natural ones come first."""
    own = {speaker.source for speaker in PRESETS}
    natural = [
        VoiceSpeaker(f"{source_name(source)}{semitones:+g}", source, semitones, size)
        for source in natural_sources()
        for semitones, size in (*([] if source in own else [(0.0, 1.0)]), *CHANGES)
    ]
    formants = [
        VoiceSpeaker(speaker.name, Source("formant", formant=speaker))
        for speaker in (*FORMANT_PRESETS, *all_formant_variants())
    ]
    return (*natural, *formants)


def source_name(source: Source) -> str:
    """Return a name for a source of a neural teacher; shares of an uneven mix are in percent."""
    if source.teacher == "piper":
        return "joe"
    is_even = len({share for _, share in source.mix}) == 1
    parts = (table[3:] + ("" if is_even else f"{share:.0%}") for table, share in source.mix)
    return "-".join(parts)


def training_speakers() -> tuple[VoiceSpeaker, ...]:
    """Return the presets and the variants to train on."""
    held = set(held_out_speakers())
    return (*PRESETS, *(one for one in all_variants() if one not in held))


def held_out_speakers() -> tuple[VoiceSpeaker, ...]:
    """Return ten variants of neural teachers that no training sees."""
    natural = [one for one in all_variants() if one.source.teacher != "formant"]
    return tuple(natural[HELD_OUT_EVERY // 2 :: HELD_OUT_EVERY][:HELD_OUT_COUNT])
