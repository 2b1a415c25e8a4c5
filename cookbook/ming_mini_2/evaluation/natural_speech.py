"""Measure how a running server speaks in the natural voices, and write JSON.

    python -m cookbook.ming_mini_2.evaluation.natural_speech --url http://127.0.0.1:8000 --out FILE

Everything goes through the server's own routes: word errors of Whisper tiny.en beyond the teacher's
own, in everyday sentences that no training has; the variation of the pitch relative to the
teacher's; whether instructions for speed and pitch are followed with the words kept; what each
manner changes in the sound; whether cloned voices of held-out speakers are nearest to their own
recording, made by a vocoder (`cloning`) or as people upload it (`uploads`). Each number stands
beside what is asked of it, and the program fails if one that must be reached is not.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from cookbook.ming_mini.evaluation.served_speech import ServedSpeaker, measure_clarity
from cookbook.ming_mini.evaluation.speech import CLONE_TEXTS, REFERENCE_TEXT
from cookbook.ming_mini_2.evaluation.instructions import (
    SayWith,
    ask_in_turn,
    measure_instructions,
    teach_in_turn,
)
from cookbook.ming_mini_2.evaluation.manners import measure_manners
from cookbook.ming_mini_2.evaluation.melody import compare_melody
from cookbook.ming_mini_2.evaluation.similarity import (
    SayAs,
    clone_all,
    compare_similarity,
    measure_pitch,
    open_embedder,
)
from cookbook.ming_mini_2.evaluation.teachers import (
    natural_recording,
    resynthesised_speech,
    teacher_clip,
    teacher_speech,
)
from cookbook.ming_mini_2.voices.speakers import PRESETS, VoiceSpeaker, held_out_speakers
from measurement.environment import fingerprint
from measurement.everyday_sentences import sample_sentences
from measurement.whisper_recogniser import WhisperRecogniser

PARTS = ("words", "melody", "instructions", "manners", "cloning", "uploads", "speed")
MANNER_TEXTS = 10


@dataclass(frozen=True)
class SpeechBound:
    """What must be reached: the value of `key` in a part's row, at least `low`, at most `high`."""

    part: str
    key: str
    low: float = -np.inf
    high: float = np.inf

    def is_met(self, row: dict[str, Any]) -> bool:
        """Return whether a row reaches it; a value that could not be measured does not."""
        value = row[self.key]
        return value is not None and self.low <= value <= self.high


BOUNDS = (
    SpeechBound("words", "excess", high=0.04),
    SpeechBound("melody", "ratio", low=0.7, high=1.3),
    SpeechBound("instructions", "accuracy", low=0.95),
    SpeechBound("cloning", "nearest_is_own", low=0.92),
    SpeechBound("speed", "real_time_factor", high=0.6),
    SpeechBound("speed", "first_audio_median_s", high=0.4),
)


def measure_words(speech: ServedSpeaker, texts: Sequence[str], seed: int) -> dict[str, Any]:
    """Return the word errors of all voices together, with one row for each; texts in turn."""
    hear, voices = WhisperRecogniser().words, {}
    for number, speaker in enumerate(PRESETS):
        own = texts[number :: len(PRESETS)]
        voices[speaker.name] = measure_clarity(speech, own, speaker, seed, hear, teacher_speech)
    counts = {
        name: sum(len(text.split()) for text in texts[number :: len(PRESETS)])
        for number, name in enumerate(voices)
    }
    excess = sum(voices[name]["excess"] * count for name, count in counts.items())
    return {"items": len(texts), "excess": excess / sum(counts.values()), "voices": voices}


def measure_melody(speech: ServedSpeaker, texts: Sequence[str], seed: int) -> dict[str, Any]:
    """Return the melody of all voices together, with one row for each; texts in turn."""
    voices = {}
    for number, speaker in enumerate(PRESETS):
        say = partial(speech.say, voice=speaker.name, seed=seed)
        teach = partial(teacher_speech, speaker=speaker)
        voices[speaker.name] = compare_melody(texts[number :: len(PRESETS)], say, teach)
    ratios = [row["ratio"] for row in voices.values()]
    mean = None if None in ratios else float(np.mean(ratios))
    return {"items": len(texts), "ratio": mean, "voices": voices}


def say_with(speech: ServedSpeaker, seed: int) -> SayWith:
    """Return a function that says texts with instructions, in the default voice."""

    def say(text: str, instructions: object) -> np.ndarray:
        options = {} if instructions is None else {"instructions": instructions}
        return speech.say(text, PRESETS[0].name, seed, **options)

    return say


def measure_instruction_following(
    speech: ServedSpeaker, texts: Sequence[str], seed: int
) -> dict[str, Any]:
    """Return how instructions are followed, and how the teacher itself follows them."""
    hear = WhisperRecogniser().words
    taught = teach_in_turn(
        texts, lambda text, manner: teacher_clip(text, PRESETS[0], "locked", manner)
    )
    teacher = measure_instructions(list(taught), hear)
    asked = ask_in_turn(texts, seed, say_with(speech, seed))
    return {
        **measure_instructions(list(asked), hear),
        **{f"{key}_by_teacher": teacher[key] for key in ("moved", "words_kept", "accuracy")},
    }


def say_as(speech: ServedSpeaker, seed: int) -> SayAs:
    """Return a function that says texts in the voice of a recording."""

    def say(text: str, fields: dict[str, str]) -> np.ndarray:
        return speech.say(text, None, seed, **fields)

    return say


def say_all(
    speakers: Sequence[VoiceSpeaker], speak: Callable[[str, VoiceSpeaker], np.ndarray]
) -> list[tuple[int, np.ndarray]]:
    """Return every speaker's number with each of the texts that clones say, as a teacher does."""
    return [
        (number, speak(text, speaker))
        for number, speaker in enumerate(speakers)
        for text in CLONE_TEXTS
    ]


def measure_cloning(speech: ServedSpeaker, seed: int) -> dict[str, Any]:
    """Return how near clones of held-out speakers are to their own recordings.

    Of ten recordings nine are a vocoder's and one is a teacher's own sound. An embedding that hears
    the vocoder takes any other clip of that voice for another speaker's. So clones are also
    compared with the ten as the vocoder speaks them all (`resynthesised`), and of both comparisons
    there is what the teachers reach, and the clips of the corpus, which a clone can hardly exceed.
    What people upload is not a vocoder's: of the teachers' own sound as recordings (`natural`), in
    the voices of the presets, there is whether clones keep the pitch.
    """
    speakers, embed, say = held_out_speakers(), open_embedder(), say_as(speech, seed)
    recordings = [teacher_speech(REFERENCE_TEXT, speaker) for speaker in speakers]
    clones = list(clone_all(speakers, recordings, say))
    others = {
        "teacher": say_all(speakers, teacher_speech),
        "clips": say_all(speakers, partial(teacher_clip, form="locked")),
    }
    resynthesised = [resynthesised_speech(REFERENCE_TEXT, speaker) for speaker in speakers]
    own = [teacher_speech(REFERENCE_TEXT, speaker) for speaker in PRESETS]
    return {
        **compare_similarity(recordings, clones, others, embed),
        "resynthesised": compare_similarity(resynthesised, clones, others, embed),
        "natural": measure_pitch(own, list(clone_all(PRESETS, own, say))),
    }


def measure_uploads(speech: ServedSpeaker, seed: int) -> dict[str, Any]:
    """Return how near clones are to recordings without any vocoder, of ten unheard voices.

    They have the sources and sizes of the held-out speakers. Clones sound as the vocoder does that
    voices are learnt from; how much of the distance is due to that is not known.
    """
    speakers, embed = held_out_speakers(), open_embedder()
    recordings = [natural_recording(REFERENCE_TEXT, speaker) for speaker in speakers]
    clones = list(clone_all(speakers, recordings, say_as(speech, seed)))
    others = {"teacher": say_all(speakers, natural_recording)}
    return {
        **compare_similarity(recordings, clones, others, embed),
        "pitch": measure_pitch(recordings, clones),
    }


def measure(url: str, seed: int, count: int, parts: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the rows of the named parts, with `count` sentences for each."""
    texts, rows = sample_sentences(count, seed), {}
    with httpx.Client(base_url=url, timeout=300.0) as client:
        speech = ServedSpeaker(client)
        if "words" in parts:
            rows["words"] = measure_words(speech, texts, seed)
        if "melody" in parts:
            rows["melody"] = measure_melody(speech, texts, seed)
        if "instructions" in parts:
            rows["instructions"] = measure_instruction_following(speech, texts[:100], seed)
        if "manners" in parts:
            rows["manners"] = measure_manners(texts[:MANNER_TEXTS], say_with(speech, seed))
        if "cloning" in parts:
            rows["cloning"] = measure_cloning(speech, seed)
        if "uploads" in parts:
            rows["uploads"] = measure_uploads(speech, seed)
        if "speed" in parts and speech.spoken:
            rows["speed"] = speech.speed()
    return rows


def unmet(rows: dict[str, dict[str, Any]]) -> list[SpeechBound]:
    """Return the bounds that a measured row does not reach."""
    return [bound for bound in BOUNDS if bound.part in rows and not bound.is_met(rows[bound.part])]


def main() -> None:
    """Measure, write the report, and fail if a bound is not met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    if args.count < len(PRESETS):
        parser.error(f"--count must be at least {len(PRESETS)}, a sentence for each voice")
    rows = measure(args.url, args.seed, args.count, args.parts)
    missed = unmet(rows)
    report = {
        "seed": args.seed,
        "rows": rows,
        "unmet": [f"{bound.part}, {bound.key}" for bound in missed],
        "environment": fingerprint(),
    }
    args.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    for bound in missed:
        print(f"not reached: {bound.part}, {bound.key}: {rows[bound.part][bound.key]}")
    if missed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
