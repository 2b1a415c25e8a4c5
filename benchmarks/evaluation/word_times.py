r"""Compare the word timestamps of synthesised speech with those of an independent recogniser.

    python -m benchmarks.evaluation.word_times --url http://127.0.0.1:8000 --out FILE

Texts are sent to `POST /v1/audio/speech` with `verbose` and a fixed seed: pairs of everyday
sentences, and the sentences with numbers, dates and addresses of `datasets/written_forms.tsv`.
Whisper tiny.en then locates the words that it hears by its attention. Words that both have are
compared; the first word of each clip is left out, because Whisper always starts it at 0.

Whisper's own times are late. How late is measured where the truth is known: at words after a pause,
whose sound starts where the silence ends. `lag_s` is the median there, over all texts, and
`corrected` are the errors without it.
"""

import argparse
import base64
import io
import json
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import soundfile
from tqdm import tqdm

from benchmarks.evaluation.datasets.written_forms import read_written_forms
from benchmarks.evaluation.metrics.recognisers import Clip, RecogniserUnavailable
from benchmarks.evaluation.metrics.whisper_tiny import HeardWord, WhisperTiny
from measurement.environment import fingerprint
from measurement.everyday_sentences import sample_sentences
from measurement.openai_api import served_model

SEED, TEXT_SEED, PAIRS = 0, 11, 100
# Silence before a word that shows where its sound starts.
PAUSE_S = 0.1
# The maximum of the median error for the benchmark to pass.
MAX_MEDIAN_S = 0.25


@dataclass(frozen=True)
class WordError:
    """How much later the server's time is than Whisper's, in seconds."""

    word: str
    start_s: float
    end_s: float
    after_pause: bool


def build_texts() -> Mapping[str, Sequence[str]]:
    """Return the texts of each set."""
    sentences = sample_sentences(2 * PAIRS, TEXT_SEED)
    pairs = [" ".join(sentences[at : at + 2]) for at in range(0, len(sentences), 2)]
    return {"everyday": pairs, "written_forms": [form.written for form in read_written_forms()]}


def speak(client: httpx.Client, model: str, voice: str | None, text: str) -> Mapping[str, Any]:
    """Return the speech of a text with its timestamps. Raises `httpx.HTTPError`."""
    body = {"model": model, "input": text, "seed": SEED, "verbose": True}
    reply = client.post("/v1/audio/speech", json=body | ({"voice": voice} if voice else {}))
    reply.raise_for_status()
    answer: Mapping[str, Any] = reply.json()
    return answer


def decode(answer: Mapping[str, Any]) -> Clip:
    """Return the samples of an answer, and their rate."""
    file = io.BytesIO(base64.b64decode(answer["audio"]))
    samples, rate = soundfile.read(file, dtype="float32")
    return samples, rate


def compare(words: Sequence[Mapping[str, Any]], heard: Sequence[HeardWord]) -> Iterator[WordError]:
    """Yield the errors of the words that both have, but for the first."""
    ours = [_simplify(word["word"]) for word in words]
    theirs = [_simplify(word.text) for word in heard]
    for first, second, count in SequenceMatcher(None, ours, theirs, False).get_matching_blocks():
        for index, other in zip(range(first, first + count), heard[second:], strict=False):
            if not index or not ours[index]:
                continue
            word, before = words[index], words[index - 1]
            yield WordError(
                word["word"],
                word["start"] - other.start,
                word["end"] - other.end,
                word["start"] - before["end"] >= PAUSE_S,
            )


def _simplify(word: str) -> str:
    return re.sub(r"[^a-z0-9]", "", word.lower())


@dataclass(frozen=True)
class SpokenSet:
    """What was measured of a set of texts: the length of the audio, its words, and their errors."""

    num_texts: int
    audio_s: float
    num_words: int
    errors: Sequence[WordError]

    def summarise(self, lag_s: float) -> dict[str, Any]:
        """Return the errors: absolute, and without the recogniser's lag."""
        starts = np.array([error.start_s for error in self.errors])
        ends = np.array([error.end_s for error in self.errors])
        return {
            "texts": self.num_texts,
            "audio_s": round(self.audio_s, 1),
            "words": self.num_words,
            "compared": len(self.errors),
            "start": _describe(starts),
            "end": _describe(ends),
            "corrected": {"start": _describe(starts + lag_s), "end": _describe(ends + lag_s)},
        }


def find_lag(errors: Iterable[WordError]) -> tuple[float, int]:
    """Return how late the recogniser is after pauses, in seconds, and at how many words."""
    pauses = [error.start_s for error in errors if error.after_pause]
    return (-float(np.median(pauses)) if pauses else 0.0), len(pauses)


def _describe(errors: np.ndarray) -> dict[str, float]:
    sizes = np.abs(errors)
    figures = {
        "median_s": np.median(sizes),
        "p90_s": np.quantile(sizes, 0.9),
        "bias_s": np.median(errors),
    }
    return {name: round(float(value), 3) for name, value in figures.items()}


def measure(client: httpx.Client, model: str, voice: str | None, texts: Sequence[str]) -> SpokenSet:
    """Speak and hear some texts, one after the other."""
    recogniser = WhisperTiny()
    errors: list[WordError] = []
    num_words, seconds = 0, 0.0
    for text in tqdm(texts, unit="text"):
        answer = speak(client, model, voice, text)
        errors += compare(answer["words"], recogniser.locate_words(decode(answer)))
        num_words += len(answer["words"])
        seconds += answer["duration"]
    return SpokenSet(len(texts), seconds, num_words, errors)


def main(command: Sequence[str] | None = None) -> int:
    """Speak, listen, compare, print and write. Returns 1 if the median error is too large."""
    arguments = _parse(command)
    try:
        model = served_model(arguments.url)
        with httpx.Client(base_url=arguments.url, timeout=600) as client:
            spoken = {
                name: measure(client, model, arguments.voice, texts)
                for name, texts in build_texts().items()
            }
    except (httpx.HTTPError, RecogniserUnavailable, OSError) as error:
        print(f"word_times: {error}", file=sys.stderr)
        return 2
    lag_s, num_pauses = find_lag(error for one in spoken.values() for error in one.errors)
    sets = {name: one.summarise(lag_s) for name, one in spoken.items()}
    words = ["python", "-m", "benchmarks.evaluation.word_times", *(command or sys.argv[1:])]
    result = {
        "command": shlex.join(words),
        "seed": SEED,
        "recogniser": "whisper tiny.en int8 (faster-whisper), word times of its attention",
        "environment": fingerprint(),
        "lag_s": round(lag_s, 3),
        "words_after_a_pause": num_pauses,
        "sets": sets,
    }
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(sets, indent=1))
    return int(any(figures["start"]["median_s"] > MAX_MEDIAN_S for figures in sets.values()))


def _parse(command: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--voice", help="the server's default when left out")
    parser.add_argument("--out", type=Path)
    return parser.parse_args(command)


if __name__ == "__main__":
    raise SystemExit(main())
