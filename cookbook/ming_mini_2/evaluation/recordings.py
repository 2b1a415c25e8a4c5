"""Choose the recordings of preset voices: those with which a server says the most words right.

    python -m cookbook.ming_mini_2.evaluation.recordings --url http://127.0.0.1:8000 \
        --checkpoint CHECKPOINT --out FILE

A preset's voice is a recording and its text, and how many words a talker says right depends on
which it is. The teachers say every text of `TEXTS` in every preset's voice. A server that has the
checkpoint's talker clones each of these recordings, and the present one of CHECKPOINT, to say
everyday sentences, which Whisper tiny.en transcribes. The best of them say more sentences, and the
one with the fewest wrong words in all becomes the recording in CHECKPOINT.

The sentences are others than the `--evaluated` ones that `natural_speech` takes with the seed
`--evaluated-seed`, so that its result stays one of unseen sentences.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, get_args

import httpx
import numpy as np
import soundfile

from cookbook.ming_mini.evaluation.served_speech import ServedSpeaker
from cookbook.ming_mini.pack import write_recordings
from cookbook.ming_mini.vocoder import RATE
from cookbook.ming_mini_2.evaluation.similarity import reference_fields
from cookbook.ming_mini_2.voices.pack import PROMPTS, recording
from cookbook.ming_mini_2.voices.synthesize import Form
from measurement.edit_distance import edit_distance
from measurement.environment import fingerprint
from measurement.everyday_sentences import available_sentences, sample_sentences
from measurement.pocketsphinx_recogniser import spoken_words
from measurement.whisper_recogniser import WhisperRecogniser
from sglang_omni.models.checksums import write_checksums
from sglang_omni.models.ming.speech.voices import read_presets

TEXTS = (
    "Please move the large chair to the window.",
    "The answer is in the small green book.",
    "We can meet at the station on Friday.",
    "There are seven birds in the old tree.",
    "My sister has a garden behind the house.",
    "The river runs past the mill to the sea.",
    "I think that we should wait for them outside.",
    "Would you like some bread and a glass of water?",
    "He put the yellow box on the top shelf.",
    "What time does the next bus leave for the village?",
    "She just bought a very good coat for the winter.",
    "Yes, I know that they were happy to help us.",
    "You should have called me before you left. I would have made dinner for all of us.",
    "The boys went down to the lake, but the water was too cold to swim that day.",
    "Thank you for your letter. It was good to hear that your family is well again.",
)
"""What the candidates say: everyday words, and some longer ones."""
AT_ONCE = 4
"""Sentences that the server is asked for at the same time."""


@dataclass(frozen=True)
class VoiceRecording:
    """A recording of a voice, int16 [n] at 44.1 kHz, and what it says."""

    text: str
    samples: np.ndarray


@dataclass(frozen=True)
class Round:
    """Sentences that every recording which is left says, and how many recordings go on."""

    sentences: Sequence[str]
    kept: int


CountWrong = Callable[[VoiceRecording, Sequence[str]], int]
"""A recording and sentences to the number of words that are wrong in them."""


def choose(
    recordings: Sequence[VoiceRecording], rounds: Sequence[Round], count_wrong: CountWrong
) -> tuple[int, list[list[int]]]:
    """Return the number of the best recording, and of each its wrong words in every round.

    The first of equal ones is the better one.
    """
    wrong: list[list[int]] = [[] for _ in recordings]
    left = list(range(len(recordings)))
    for one in rounds:
        for number in left:
            wrong[number].append(count_wrong(recordings[number], one.sentences))
        left = sorted(left, key=lambda number: sum(wrong[number]))[: one.kept]
    return left[0], wrong


def draw_rounds(first: int, more: int, kept: int, evaluated: int, seed: int) -> list[Round]:
    """Return two rounds of sentences of which `evaluated` ones of that seed are none.

    Raises:
        ValueError: There are too few other sentences.
    """
    held = set(sample_sentences(evaluated, seed))
    others = [text for text in available_sentences() if text not in held]
    if first + more > len(others):
        raise ValueError(f"there are {len(others)} other sentences, not {first + more}")
    drawn = Random(seed).sample(others, first + more)
    return [Round(drawn[:first], kept), Round(drawn[first:], 1)]


def count_wrong_words(speech: ServedSpeaker, hear: Callable[[np.ndarray], list[str]]) -> CountWrong:
    """Return a function that has a server say sentences, and counts the words misheard.

    The number of a sentence is its seed, so that recordings are compared with the same noise.
    """

    def count(one: VoiceRecording, sentences: Sequence[str]) -> int:
        fields = reference_fields(one.samples, one.text)

        def say(numbered: tuple[int, str]) -> np.ndarray:
            return speech.say(numbered[1], None, numbered[0], **fields)

        with ThreadPoolExecutor(AT_ONCE) as asking:
            said = list(asking.map(say, enumerate(sentences)))
        return sum(
            edit_distance(spoken_words(text), hear(samples))
            for text, samples in zip(sentences, said, strict=True)
        )

    return count


def read_recordings(checkpoint: Path) -> dict[str, VoiceRecording]:
    """Return the recordings of a checkpoint's voices, in their order."""
    return {
        one.name: VoiceRecording(one.text, soundfile.read(one.wav, dtype="int16")[0])
        for one in read_presets(checkpoint / "talker")
    }


def replace_recordings(checkpoint: Path, recordings: dict[str, VoiceRecording]) -> None:
    """Write the recordings of a checkpoint's voices, and the checksums of all files."""
    texts = {name: one.text for name, one in recordings.items()}
    write_recordings(checkpoint / "talker", texts, lambda name, _: recordings[name].samples)
    write_checksums(checkpoint)


def choose_and_report(
    name: str,
    candidates: Sequence[VoiceRecording],
    rounds: Sequence[Round],
    count_wrong: CountWrong,
) -> tuple[VoiceRecording, dict[str, Any]]:
    """Return the best recording of a voice, and the row of the report."""
    best, wrong = choose(candidates, rounds, count_wrong)
    row = {
        "chosen": best,
        "recordings": [
            {"text": one.text, "seconds": len(one.samples) / RATE, "wrong": counts}
            for one, counts in zip(candidates, wrong, strict=True)
        ],
    }
    print(f"{name}: {candidates[best].text!r}, wrong words {wrong[best]}, before {wrong[0]}")
    return candidates[best], row


def main() -> None:
    """Choose; after every voice write the report, and the recordings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--voices", nargs="+", choices=PROMPTS, default=list(PROMPTS))
    parser.add_argument("--form", choices=get_args(Form), default="locked")
    parser.add_argument("--first", type=int, default=24, metavar="SENTENCES")
    parser.add_argument("--more", type=int, default=60, metavar="SENTENCES")
    parser.add_argument("--kept", type=int, default=4, metavar="RECORDINGS")
    parser.add_argument("--evaluated", type=int, default=200)
    parser.add_argument("--evaluated-seed", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    rounds = draw_rounds(args.first, args.more, args.kept, args.evaluated, args.evaluated_seed)
    words = [sum(len(spoken_words(text)) for text in one.sentences) for one in rounds]
    chosen, rows = read_recordings(args.checkpoint), {}
    with httpx.Client(base_url=args.url, timeout=300.0) as client:
        count_wrong = count_wrong_words(ServedSpeaker(client), WhisperRecogniser().words)
        for name in args.voices:
            made = [VoiceRecording(text, recording(name, text, args.form)) for text in TEXTS]
            candidates = [chosen[name], *made]
            chosen[name], rows[name] = choose_and_report(name, candidates, rounds, count_wrong)
            report = {
                "evaluated_seed": args.evaluated_seed,
                "words": words,
                "voices": rows,
                "environment": fingerprint(),
            }
            args.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
            replace_recordings(args.checkpoint, chosen)


if __name__ == "__main__":
    main()
