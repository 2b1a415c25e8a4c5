r"""Say everyday sentences with numbers, dates and addresses, and compare what Whisper hears.

    python -m benchmarks.evaluation.heard_text --url http://127.0.0.1:8000 --out FILE --run after
    python -m benchmarks.evaluation.heard_text --url ... --out FILE --run intended --texts intended

Each of 100 sentences (`datasets/written_forms.tsv`) is sent to `POST /v1/audio/speech` with the
default voice and a fixed seed. Whisper tiny.en transcribes the speech twice, and each transcript is
compared with the words that are meant:

* `usual`: as Whisper likes to write. Digits and signs count as whichever of their readings has the
  fewest wrong words ("1984" may have been "nineteen eighty four"). This is lenient: Whisper also
  writes "911" for "nine hundred eleven" and "$3.50" for "three point five zero dollars".
* `in_words`: digits are forbidden, so that Whisper has to write which words it hears.

`--texts intended` sends the intended words instead. That run is the reference: what this voice and
recogniser reach when nothing is left to the text front end.

Every run is stored in FILE under its name, beside those that are already there.
"""

import argparse
import asyncio
import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
from tqdm import tqdm

from benchmarks.client.exchange import send_request
from benchmarks.client.speech import NO_AUDIO
from benchmarks.client.target import SpeechRequest, Target
from benchmarks.evaluation.datasets.written_forms import WrittenForm, read_written_forms
from benchmarks.evaluation.metrics.recognisers import Clip, RecogniserUnavailable, SpeechRecogniser
from benchmarks.evaluation.metrics.whisper_tiny import WhisperTiny
from benchmarks.evaluation.readings.summary import HeardSentence, summarise
from measurement.environment import fingerprint
from measurement.openai_api import served_model

SEED = 0


class SpeechFailed(RuntimeError):
    """The server made no speech of a text."""


async def speak_all(target: Target, texts: Sequence[str]) -> list[Clip]:
    """Return the speech of every text, one after the other. Raises `SpeechFailed`."""
    async with aiohttp.ClientSession() as session:
        return [
            await _speak(target, session, text)
            for text in tqdm(texts, desc="speaking", unit="text")
        ]


async def _speak(target: Target, session: aiohttp.ClientSession, text: str) -> Clip:
    answer = await send_request(session, target.call(SpeechRequest(text, seed=SEED)))
    samples = np.frombuffer(bytes(answer.audio.samples), "<i2").astype(np.float32) / 32768
    if answer.error or not len(samples):
        raise SpeechFailed(f"{text!r}: {answer.error or NO_AUDIO}")
    return samples, answer.audio.rate


def hear_all(
    forms: Sequence[WrittenForm], clips: Sequence[Clip], recogniser: SpeechRecogniser
) -> list[HeardSentence]:
    """Transcribe the speech of each sentence and compare it with its intended words."""
    return [
        HeardSentence.compare(form, recogniser.transcribe([clip])[0])
        for form, clip in tqdm(list(zip(forms, clips, strict=True)), desc=recogniser.name)
    ]


def collect_results(heard: Mapping[str, Sequence[HeardSentence]]) -> dict[str, Any]:
    """Return the figures of each style of transcript, and every sentence with all of them."""
    sentences = []
    for same in zip(*heard.values(), strict=True):
        transcripts = {style: item.as_json() for style, item in zip(heard, same, strict=True)}
        sentences.append({**same[0].form_as_json(), **transcripts})
    summary = {style: summarise(items) for style, items in heard.items()}
    return {"summary": summary, "sentences": sentences}


def store_run(path: Path, name: str, run: dict[str, Any]) -> None:
    """Write a run into a result file, beside the runs with other names."""
    result = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"runs": {}}
    result["runs"][name] = run
    path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main(command: Sequence[str] | None = None) -> int:
    """Speak, listen, print and write."""
    arguments = _parse(command)
    try:
        recognisers = {"usual": WhisperTiny(), "in_words": WhisperTiny(in_words=True)}
        forms = read_written_forms()
        texts = [getattr(form, arguments.texts) for form in forms]
        target = Target(arguments.url, served_model(arguments.url), voice=arguments.voice)
        clips = asyncio.run(speak_all(target, texts))
    except (SpeechFailed, RecogniserUnavailable, OSError) as error:
        print(f"heard_text: {error}", file=sys.stderr)
        return 2
    results = collect_results(
        {style: hear_all(forms, clips, recogniser) for style, recogniser in recognisers.items()}
    )
    if arguments.out:
        store_run(arguments.out, arguments.run, _describe(arguments, command) | results)
    print(json.dumps(results["summary"], indent=1))
    return 0


def _describe(arguments: argparse.Namespace, command: Sequence[str] | None) -> dict[str, Any]:
    words = ["python", "-m", "benchmarks.evaluation.heard_text", *(command or sys.argv[1:])]
    return {
        "command": shlex.join(words),
        "server_commit": arguments.server_commit,
        "seed": SEED,
        "recogniser": "whisper tiny.en int8 (faster-whisper)",
        "environment": fingerprint(),
    }


def _parse(command: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--voice", help="the server's default when left out")
    parser.add_argument("--texts", choices=("written", "intended"), default="written")
    parser.add_argument("--server-commit", default="unknown", help="noted in the result")
    parser.add_argument("--run", default="run", help="the name of this run in the result")
    parser.add_argument("--out", type=Path)
    return parser.parse_args(command)


if __name__ == "__main__":
    raise SystemExit(main())
