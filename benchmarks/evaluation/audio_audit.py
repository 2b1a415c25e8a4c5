"""Check that streamed speech equals speech that is not streamed, over many texts.

    python -m benchmarks.evaluation.audio_audit --url http://127.0.0.1:8000 --out FILE \\
        [--recogniser whisper --weights DIR]

Every text is spoken four times: twice whole and twice streamed, with two seeds. The audit requires

* no wrong character, either way (by the recogniser; without one this is not judged, and the result
  says so);
* a mean mel distance between the two ways of at most 1.5 times the distance between two seeds of
  one way. Both distances are between different seeds, so that the same rule holds for a server
  without seeds;
* total durations within 3 % of each other.

For servers with seeds the distance between the two ways with the same seed is reported too: it
should be zero. The protocol is that of sglang-omni's audio-equivalence audit (20 texts or more).
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import aiohttp
import numpy as np
from tqdm import tqdm

from benchmarks.client.exchange import send_request
from benchmarks.client.speech import NO_AUDIO
from benchmarks.client.target import DIALECTS, SpeechRequest, Target
from benchmarks.evaluation.datasets.bundled import seed_tts_en
from benchmarks.evaluation.metrics.mel import distance, log_mel
from benchmarks.evaluation.metrics.recognisers import LISTENERS, Listener, NoRecogniser
from measurement.environment import fingerprint
from measurement.openai_api import served_model
from measurement.word_errors import count_word_errors

LEAST_TEXTS = 20
MOST_DISTANCE, MOST_DURATION = 1.5, 0.03
SEEDS = (0, 1)
WAYS = ("whole", "streamed")


@dataclass(frozen=True)
class Spoken:
    """One rendition: float samples [n] at `rate` Hz."""

    samples: np.ndarray
    rate: int

    @property
    def seconds(self) -> float:
        """Its duration."""
        return len(self.samples) / self.rate


# By way ("whole" or "streamed") and seed.
Renditions = dict[tuple[str, int], Spoken]


@dataclass(frozen=True)
class Audited:
    """What was found of one text. Distances are of log-mel spectra; `wrong` are characters, None
    where nobody listened."""

    text: str
    within: float
    between: float
    same_seed: float
    whole_s: float
    streamed_s: float
    whole_wrong: int | None
    streamed_wrong: int | None


class Failed(RuntimeError):
    """A rendition could not be had."""


async def speak(target: Target, texts: Sequence[str]) -> list[Renditions]:
    """Every text both ways with both seeds, one after the other. Raises `Failed`."""
    found = []
    async with aiohttp.ClientSession() as session:
        for text in tqdm(texts, desc="speaking", unit="text"):
            made: Renditions = {}
            for way, seed in product(WAYS, SEEDS):
                asked = replace(target, streaming=way == "streamed")
                answer = await send_request(session, asked.call(SpeechRequest(text, seed=seed)))
                samples = (
                    np.frombuffer(bytes(answer.audio.samples), "<i2").astype(np.float32) / 32768
                )
                if answer.error or not len(samples):
                    raise Failed(f"{text!r}, {way}: {answer.error or NO_AUDIO}")
                made[way, seed] = Spoken(samples, answer.audio.rate)
            found.append(made)
    return found


def audit(text: str, made: Renditions, listener: Listener | None) -> Audited:
    """Measure the renditions of one text."""
    mel = {key: log_mel(one.samples, one.rate) for key, one in made.items()}
    first, second = SEEDS

    def apart(*pairs: tuple[tuple[str, int], tuple[str, int]]) -> float:
        return fmean(distance(mel[one], mel[other]) for one, other in pairs)

    def wrong(way: str) -> int | None:
        if listener is None:
            return None
        clips = [(made[way, seed].samples, made[way, seed].rate) for seed in SEEDS]
        return sum(_characters(text, one) for one in listener.hear(clips))

    return Audited(
        text,
        within=apart(
            (("whole", first), ("whole", second)), (("streamed", first), ("streamed", second))
        ),
        between=apart(
            (("whole", first), ("streamed", second)), (("streamed", first), ("whole", second))
        ),
        same_seed=apart(*((("whole", seed), ("streamed", seed)) for seed in SEEDS)),
        whole_s=sum(made["whole", seed].seconds for seed in SEEDS),
        streamed_s=sum(made["streamed", seed].seconds for seed in SEEDS),
        whole_wrong=wrong("whole"),
        streamed_wrong=wrong("streamed"),
    )


def _characters(said: str, heard: str) -> int:
    return count_word_errors(said.lower(), heard.lower(), "zh").wrong


def judge(found: Sequence[Audited], listener: str | None) -> dict[str, Any]:
    """The verdict on all texts, and what it rests on. Raises `ValueError` for fewer than 20."""
    if len(found) < LEAST_TEXTS:
        raise ValueError(f"{len(found)} texts are too few: an audit takes {LEAST_TEXTS}")
    within, between = fmean(one.within for one in found), fmean(one.between for one in found)
    whole, streamed = (sum(getattr(one, f"{way}_s") for one in found) for way in WAYS)
    checks = {
        "mel distance": between <= MOST_DISTANCE * within,
        "duration": abs(streamed / whole - 1) <= MOST_DURATION,
    }
    wrong = None
    if listener is not None:
        wrong = [sum(getattr(one, f"{way}_wrong") for one in found) for way in WAYS]
        checks["characters"] = wrong == [0, 0]
    return {
        "texts": len(found),
        "passed": all(checks.values()),
        "checks": checks,
        "listener": listener or "nobody: characters are not judged",
        "characters_wrong": wrong,
        "mel_within": within,
        "mel_between": between,
        "mel_same_seed": fmean(one.same_seed for one in found),
        "streamed_by_whole_duration": streamed / whole,
    }


def main(command: Sequence[str] | None = None) -> int:
    """Speak, judge, print and write; fails where the audit is not passed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--model", help="the served model, asked for when left out")
    parser.add_argument("--dialect", choices=DIALECTS, default="ours")
    parser.add_argument("--voice")
    parser.add_argument("--texts", type=Path, help="a file, a text a line; else bundled ones")
    parser.add_argument("--count", type=int, default=LEAST_TEXTS, help="texts, at least 20")
    parser.add_argument("--recogniser", choices=sorted(LISTENERS))
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args(command)
    texts = [row["infer_text"] for row in seed_tts_en()]
    if arguments.texts:
        texts = arguments.texts.read_text(encoding="utf-8").splitlines()
    try:
        make = LISTENERS[arguments.recogniser] if arguments.recogniser else None
        listener = make(arguments.weights, "en") if make else None
        model = arguments.model or served_model(arguments.url)
        target = Target(arguments.url, model, arguments.dialect, voice=arguments.voice)
        texts = texts[: arguments.count]
        spoken = asyncio.run(speak(target, texts))
        pairs = zip(texts, spoken, strict=True)
        found = [audit(text, made, listener) for text, made in tqdm(pairs, desc="measuring")]
        verdict = judge(found, listener.name if listener else None)
    except (Failed, NoRecogniser, ValueError, OSError) as error:
        print(f"audio_audit: {error}", file=sys.stderr)
        return 2
    print(json.dumps(verdict, indent=1))
    if arguments.out:
        result = verdict | {"environment": fingerprint(), "found": [asdict(one) for one in found]}
        arguments.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0 if verdict["passed"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
