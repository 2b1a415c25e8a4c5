r"""Check that streamed speech equals speech that is not streamed, over many texts.

    python -m benchmarks.evaluation.audio_audit --url http://127.0.0.1:8000 --out FILE \
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
from benchmarks.evaluation.metrics.mel import log_mel, mel_distance
from benchmarks.evaluation.metrics.recognisers import (
    RECOGNISERS,
    RecogniserUnavailable,
    SpeechRecogniser,
)
from measurement.environment import fingerprint
from measurement.openai_api import served_model
from measurement.word_errors import count_word_errors

MIN_TEXTS = 20
MAX_DISTANCE_RATIO, MAX_DURATION_DIFFERENCE = 1.5, 0.03
SEEDS = (0, 1)
WAYS = ("whole", "streamed")


@dataclass(frozen=True)
class Rendition:
    """One rendition of a text: float samples [n] at `rate` Hz."""

    samples: np.ndarray
    rate: int

    @property
    def seconds(self) -> float:
        """Return the duration in seconds."""
        return len(self.samples) / self.rate


# By way ("whole" or "streamed") and seed.
Renditions = dict[tuple[str, int], Rendition]


@dataclass(frozen=True)
class AuditedText:
    """The measurements of one text.

    Distances are of log-mel spectra. `whole_wrong` and `streamed_wrong` count wrong characters;
    they are None without a recogniser.
    """

    text: str
    within: float
    between: float
    same_seed: float
    whole_s: float
    streamed_s: float
    whole_wrong: int | None
    streamed_wrong: int | None


class RenditionError(RuntimeError):
    """The server did not make a rendition."""


async def render_all(target: Target, texts: Sequence[str]) -> list[Renditions]:
    """Render every text both ways with both seeds, one after the other. Raises `RenditionError`."""
    all_renditions = []
    async with aiohttp.ClientSession() as session:
        for text in tqdm(texts, desc="speaking", unit="text"):
            renditions: Renditions = {}
            for way, seed in product(WAYS, SEEDS):
                server = replace(target, streaming=way == "streamed")
                answer = await send_request(session, server.call(SpeechRequest(text, seed=seed)))
                samples = (
                    np.frombuffer(bytes(answer.audio.samples), "<i2").astype(np.float32) / 32768
                )
                if answer.error or not len(samples):
                    raise RenditionError(f"{text!r}, {way}: {answer.error or NO_AUDIO}")
                renditions[way, seed] = Rendition(samples, answer.audio.rate)
            all_renditions.append(renditions)
    return all_renditions


def audit_text(
    text: str, renditions: Renditions, recogniser: SpeechRecogniser | None
) -> AuditedText:
    """Measure the renditions of one text."""
    mel = {key: log_mel(rendition.samples, rendition.rate) for key, rendition in renditions.items()}
    first, second = SEEDS

    def mean_distance(*pairs: tuple[tuple[str, int], tuple[str, int]]) -> float:
        return fmean(
            mel_distance(mel[first_key], mel[second_key]) for first_key, second_key in pairs
        )

    def wrong(way: str) -> int | None:
        if recogniser is None:
            return None
        clips = [(renditions[way, seed].samples, renditions[way, seed].rate) for seed in SEEDS]
        return sum(
            _count_wrong_characters(text, transcript) for transcript in recogniser.transcribe(clips)
        )

    return AuditedText(
        text,
        within=mean_distance(
            (("whole", first), ("whole", second)), (("streamed", first), ("streamed", second))
        ),
        between=mean_distance(
            (("whole", first), ("streamed", second)), (("streamed", first), ("whole", second))
        ),
        same_seed=mean_distance(*((("whole", seed), ("streamed", seed)) for seed in SEEDS)),
        whole_s=sum(renditions["whole", seed].seconds for seed in SEEDS),
        streamed_s=sum(renditions["streamed", seed].seconds for seed in SEEDS),
        whole_wrong=wrong("whole"),
        streamed_wrong=wrong("streamed"),
    )


def _count_wrong_characters(reference: str, transcript: str) -> int:
    return count_word_errors(reference.lower(), transcript.lower(), "zh").wrong


def judge_audit(audited: Sequence[AuditedText], recogniser: str | None) -> dict[str, Any]:
    """Return the verdict on all texts, and its basis.

    Raises `ValueError` for fewer than 20 texts.
    """
    if len(audited) < MIN_TEXTS:
        raise ValueError(f"{len(audited)} texts are too few: an audit takes {MIN_TEXTS}")
    within, between = (
        fmean(text.within for text in audited),
        fmean(text.between for text in audited),
    )
    whole, streamed = (sum(getattr(text, f"{way}_s") for text in audited) for way in WAYS)
    checks = {
        "mel distance": between <= MAX_DISTANCE_RATIO * within,
        "duration": abs(streamed / whole - 1) <= MAX_DURATION_DIFFERENCE,
    }
    wrong = None
    if recogniser is not None:
        wrong = [sum(getattr(text, f"{way}_wrong") for text in audited) for way in WAYS]
        checks["characters"] = wrong == [0, 0]
    return {
        "texts": len(audited),
        "passed": all(checks.values()),
        "checks": checks,
        "listener": recogniser or "none: characters are not judged",
        "characters_wrong": wrong,
        "mel_within": within,
        "mel_between": between,
        "mel_same_seed": fmean(text.same_seed for text in audited),
        "streamed_by_whole_duration": streamed / whole,
    }


def main(command: Sequence[str] | None = None) -> int:
    """Speak, judge, print and write. Return 1 if the audit does not pass."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--model", help="the served model, asked for when left out")
    parser.add_argument("--dialect", choices=DIALECTS, default="ours")
    parser.add_argument("--voice")
    parser.add_argument("--texts", type=Path, help="a file, a text a line; else bundled ones")
    parser.add_argument("--count", type=int, default=MIN_TEXTS, help="texts, at least 20")
    parser.add_argument("--recogniser", choices=sorted(RECOGNISERS))
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args(command)
    texts = [row["infer_text"] for row in seed_tts_en()]
    if arguments.texts:
        texts = arguments.texts.read_text(encoding="utf-8").splitlines()
    try:
        recogniser_class = RECOGNISERS[arguments.recogniser] if arguments.recogniser else None
        recogniser = recogniser_class(arguments.weights, "en") if recogniser_class else None
        model = arguments.model or served_model(arguments.url)
        target = Target(arguments.url, model, arguments.dialect, voice=arguments.voice)
        texts = texts[: arguments.count]
        all_renditions = asyncio.run(render_all(target, texts))
        pairs = zip(texts, all_renditions, strict=True)
        audited = [
            audit_text(text, renditions, recogniser)
            for text, renditions in tqdm(pairs, desc="measuring")
        ]
        verdict = judge_audit(audited, recogniser.name if recogniser else None)
    except (RenditionError, RecogniserUnavailable, ValueError, OSError) as error:
        print(f"audio_audit: {error}", file=sys.stderr)
        return 2
    print(json.dumps(verdict, indent=1))
    if arguments.out:
        result = verdict | {
            "environment": fingerprint(),
            "found": [asdict(text_result) for text_result in audited],
        }
        arguments.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0 if verdict["passed"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
