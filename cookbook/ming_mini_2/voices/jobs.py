"""Which texts which speakers say, and how: an endless list that follows from a seed."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

from cookbook.ming_mini.lexicon import Lexicon
from cookbook.ming_mini.sentences import Split
from cookbook.ming_mini_2.voices.instructions import draw_instruction
from cookbook.ming_mini_2.voices.manner import NEUTRAL, Manner, draw_manner
from cookbook.ming_mini_2.voices.speakers import PRESETS, Source, VoiceSpeaker
from cookbook.ming_mini_2.voices.synthesize import SpeechJob, Take, is_unchanged
from cookbook.ming_mini_2.voices.texts import draw_texts, is_reserved

PRESET_SHARE, FORMANT_SHARE = 0.58, 0.05
"""Shares of renderings of a preset's source, and of flite and espeak-ng."""
DEFAULT_SHARE = 0.4
"""The share of the presets' renderings that is the default voice's alone. All presets have even
shares of the rest."""
MANNER_SHARE = 0.6
OWN_SOUND_SHARE, RECORDED_SHARE = 1.0, 0.2
"""The shares of takes without an instruction that also give a recording: of those whose recording
is the teacher's own sound, and of the others."""
LATE_FRAMES = range(0, 16, 2)
"""Where in a latent (16 frames) a recording begins."""
GIVEN_SHARE = 0.6
"""Of the texts of a corpus that also says given ones."""
VARIANTS = 2
"""Variants of the same source that a rendering gives besides."""


def draw_jobs(
    seed: int,
    lexicon: Lexicon,
    speakers: Sequence[VoiceSpeaker],
    split: Split = "train",
    given: Sequence[str] = (),
    frequent: Sequence[str] = (),
) -> Iterator[SpeechJob]:
    """Yield jobs forever.

    Args:
        seed: Determines texts, takes and instructions.
        lexicon: The words of the texts.
        speakers: The presets that are in it get most of the clips.
        split: The split of texts and instructions.
        given: More texts, which `GIVEN_SHARE` of the jobs say.
        frequent: Frequent words, which many of the other texts have.
    """
    rng = Random(f"jobs {seed}")
    by_source: dict[Source, list[VoiceSpeaker]] = {}
    for speaker in speakers:
        by_source.setdefault(speaker.source, []).append(speaker)
    for text in mix_texts(draw_texts(seed, lexicon, split, frequent), given, rng):
        yield SpeechJob(text, _draw_takes(by_source[_draw_source(by_source, rng)], rng, split))


def unchanged_jobs(jobs: Iterator[SpeechJob]) -> Iterator[SpeechJob]:
    """Yield the jobs with the takes that have the teacher's own voice; others are left out."""
    for job in jobs:
        if takes := tuple(take for take in job.takes if is_unchanged(take)):
            yield replace(job, takes=takes)


def mix_texts(texts: Iterator[str], given: Sequence[str], rng: Random) -> Iterator[str]:
    """Yield texts, of which `GIVEN_SHARE` are drawn from the given ones if there are any.

    A sentence of the evaluation is not among them.
    """
    free = [text for text in given if not is_reserved(text)]
    for text in texts:
        yield rng.choice(free) if free and rng.random() < GIVEN_SHARE else text


def _draw_source(sources: dict[Source, list[VoiceSpeaker]], rng: Random) -> Source:
    presets = [one.source for one in PRESETS if one.source in sources]
    formants = [one for one in sources if one.teacher == "formant"]
    others = [one for one in sources if one.teacher != "formant" and one not in presets]
    draw = rng.random()
    if presets and draw < PRESET_SHARE:
        often = PRESETS[0].source in presets and rng.random() < DEFAULT_SHARE
        return PRESETS[0].source if often else rng.choice(presets)
    if formants and draw > 1 - FORMANT_SHARE:
        return rng.choice(formants)
    return rng.choice(others or presets or formants)


def _draw_takes(speakers: Sequence[VoiceSpeaker], rng: Random, split: Split) -> tuple[Take, ...]:
    """Draw a first take and variants with its speed; a preset comes first if there is one."""
    first = speakers[0] if speakers[0] in PRESETS else rng.choice(speakers)
    manner = draw_manner(rng) if rng.random() < MANNER_SHARE else NEUTRAL
    others = [one for one in speakers if one is not first]
    chosen = rng.sample(others, min(VARIANTS, len(others)))
    # Emotions and styles have a speed of their own, which no other instruction asks for.
    rest = Manner(speed=manner.speed)
    if manner.emotion or manner.style:
        chosen = []
    takes = [_take(first, manner, rng, split), *(_take(one, rest, rng, split) for one in chosen)]
    if not manner.is_neutral and chosen and rest.is_neutral:
        takes.append(_take(first, NEUTRAL, rng, split))
    return tuple(takes)


def _take(speaker: VoiceSpeaker, manner: Manner, rng: Random, split: Split) -> Take:
    if manner.is_neutral:
        share = OWN_SOUND_SHARE if is_unchanged(Take(speaker)) else RECORDED_SHARE
        return Take(speaker, late=rng.choice(LATE_FRAMES) if rng.random() < share else None)
    return Take(speaker, manner, draw_instruction(manner, rng, split))
