"""Measure how well a running Ming-mini answers and speaks, on fresh items of a seed.

    python -m cookbook.ming_mini.evaluation.quality --url http://127.0.0.1:8000 --seed 7 --out FILE

Every item is of the held-out split, so no training has seen its text, picture or sentence. Spoken
questions come in voices of the training and in voices that were not part of it. Accuracies have
Wilson's 95 % intervals; the word error rate of transcripts has a bootstrap interval.
"""

import argparse
import asyncio
import base64
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import httpx
import numpy as np

from cookbook.ming_mini.evaluation import served_speech
from cookbook.ming_mini.lexicon import WORDNET, Lexicon, read_lexicon
from cookbook.ming_mini.speakers import PRESETS, Speaker, held_out_speakers
from cookbook.ming_mini.synthesize import SynthesisError, synthesize_natural
from cookbook.ming_mini.thinker.checks import is_right, word_errors, words
from cookbook.ming_mini.thinker.items import Item
from cookbook.ming_mini.thinker.speech_input import Synthesizer, at_16khz
from cookbook.ming_mini.thinker.tasks import KINDS, TASKS, TAUGHT_ONLY, groups
from measurement.environment import fingerprint
from measurement.intervals import bootstrap_interval, wilson_interval
from measurement.media_files import encode_png, encode_wav

VOICES = {"seen voice": PRESETS, "unseen voice": held_out_speakers()}
MAX_TOKENS = 160
MAX_SHOWN_CHARACTERS = 120
"""The most characters of a wrong answer that are printed."""


@dataclass(frozen=True)
class Question:
    """An item to ask: `row` is its row of the report, `clip` its speech, int16 [n]."""

    row: str
    item: Item
    clip: np.ndarray | None = None


@dataclass(frozen=True)
class Answered:
    """An answer, and the seconds that it took."""

    question: Question
    said: str
    seconds: float

    @property
    def right(self) -> bool:
        """Return whether the answer is right."""
        return is_right(self.question.item, self.said)


def questions(
    seed: int,
    count: int,
    lexicon: Lexicon,
    rows: Sequence[str] = (),
    speak: Synthesizer = synthesize_natural,
) -> Iterator[Question]:
    """Yield `count` fresh questions for every row of the report, or for the named `rows`."""
    rng = Random(f"quality {seed}")
    for kind in KINDS:
        stream = groups(kind, f"quality {seed}", lexicon, "held_out")
        wanted = dict.fromkeys((r for r in all_rows() if not rows or r in rows), count)
        wanted = {row: n for row, n in wanted.items() if _kind(row) == kind}
        while any(wanted.values()):
            items = next(stream)
            # One question for each picture and clip: the intervals assume independent items.
            open_rows = [(r, i) for i in items for r in _rows_of(i) if wanted.get(r)]
            if open_rows:
                row, item = rng.choice(open_rows)
                clip = _clip(item, row, rng, speak)
                if clip is not None or item.speech is None:
                    wanted[row] -= 1
                    yield Question(row, item, clip)


def all_rows() -> tuple[str, ...]:
    """Return every row of the report."""
    return tuple(
        row
        for task in TASKS
        if task not in TAUGHT_ONLY
        for row in ([f"{task}, {voice}" for voice in VOICES] if _kind(task) == "speech" else [task])
    )


def _kind(row: str) -> str:
    if row.startswith("picture"):
        return "picture"
    return "speech" if row.startswith(("transcribe", "spoken")) else "text"


def _rows_of(item: Item) -> list[str]:
    return [f"{item.task}, {voice}" for voice in VOICES] if item.speech else [item.task]


def _clip(item: Item, row: str, rng: Random, speak: Synthesizer) -> np.ndarray | None:
    if item.speech is None:
        return None
    voices: Sequence[Speaker] = VOICES[row.split(", ")[1]]
    try:
        return at_16khz(speak(item.speech, rng.choice(voices)))
    except SynthesisError:
        return None


def message(question: Question) -> dict[str, Any]:
    """Build the user's message in the form of OpenAI's API."""
    item, media = question.item, list[dict[str, Any]]()
    if item.scene:
        url = f"data:image/png;base64,{_base64(encode_png(item.scene.draw()))}"
        media.append({"type": "image_url", "image_url": {"url": url}})
    if question.clip is not None:
        sound = {"data": _base64(encode_wav(question.clip)), "format": "wav"}
        media.append({"type": "input_audio", "input_audio": sound})
    text = [{"type": "text", "text": item.question}] if item.question else []
    return {"role": "user", "content": media + text if item.media_first else text + media}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


async def send_all(
    url: str, questions_to_ask: Sequence[Question], max_concurrent: int
) -> list[Answered]:
    """Send every question. Raises `httpx.HTTPStatusError` if the server rejects one."""
    semaphore = asyncio.Semaphore(max_concurrent)
    async with httpx.AsyncClient(base_url=url, timeout=120.0) as client:
        models = (await client.get("/v1/models")).raise_for_status().json()
        model = models["data"][0]["id"]

        async def send_one(question: Question) -> Answered:
            async with semaphore:
                return await _send(client, model, question)

        return await asyncio.gather(*(send_one(question) for question in questions_to_ask))


async def _send(client: httpx.AsyncClient, model: str, question: Question) -> Answered:
    route = _transcribe if question.item.task == "transcribe" else _chat
    start = time.monotonic()
    said = await route(client, model, question)
    return Answered(question, said, time.monotonic() - start)


async def _chat(client: httpx.AsyncClient, model: str, question: Question) -> str:
    body = {
        "model": model,
        "messages": [message(question)],
        "temperature": 0,
        "max_tokens": MAX_TOKENS,
    }
    reply = await client.post("/v1/chat/completions", json=body)
    reply.raise_for_status()
    return reply.json()["choices"][0]["message"]["content"] or ""


async def _transcribe(client: httpx.AsyncClient, model: str, question: Question) -> str:
    """Return the text of `/v1/audio/transcriptions`, with the server's own prompt."""
    assert question.clip is not None
    file = ("clip.wav", encode_wav(question.clip), "audio/wav")
    reply = await client.post(
        "/v1/audio/transcriptions", data={"model": model}, files={"file": file}
    )
    reply.raise_for_status()
    text: str = reply.json()["text"]
    return text


def report(answers: Sequence[Answered]) -> dict[str, dict[str, Any]]:
    """Return the accuracy of each row, and the word error rate of transcripts."""
    rows: dict[str, list[Answered]] = {}
    for answer in answers:
        rows.setdefault(answer.question.row, []).append(answer)
    return {row: _row(row_answers) for row, row_answers in rows.items()}


def _row(answers: Sequence[Answered]) -> dict[str, Any]:
    right = sum(answer.right for answer in answers)
    result: dict[str, Any] = {
        "items": len(answers),
        "accuracy": right / len(answers),
        "interval": wilson_interval(right, len(answers)),
        "median_seconds": float(np.median([answer.seconds for answer in answers])),
    }
    if answers[0].question.item.check == "words":
        pairs = [_errors(answer) for answer in answers]
        result["word_error"] = sum(wrong for wrong, _ in pairs) / sum(count for _, count in pairs)
        result["word_error_interval"] = bootstrap_interval(pairs)
    return result


def _errors(answer: Answered) -> tuple[int, int]:
    expected = answer.question.item.answer
    return word_errors(expected, answer.said), len(words(expected))


def main() -> int:
    """Ask and write a JSON file. Return 1 if a gate is not met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", choices=("mini",), default="mini")
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100, help="items for each row")
    parser.add_argument("--rows", nargs="*", default=(), metavar="ROW", help="some rows only")
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--lexicon", type=Path, default=WORDNET)
    parser.add_argument("--show", type=int, default=2, help="wrong answers to show for each row")
    parser.add_argument("--gates", type=Path, help="JSON of the minimum accuracy of rows")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    gates = json.loads(args.gates.read_text()) if args.gates else {}
    args.rows = args.rows or tuple(gates)
    lexicon = read_lexicon(args.lexicon)
    asked = list(questions(args.seed, args.count, lexicon, args.rows))
    answers = asyncio.run(send_all(args.url, asked, args.at_once)) if asked else []
    rows = report(answers)
    for row, result in rows.items():
        _show(row, result, [one for one in answers if one.question.row == row], args.show)
    for row, result in served_speech.measure(args.url, args.seed, args.count, lexicon, args.rows):
        print(f"{row}: {json.dumps(result)}", flush=True)
        rows[row] = result
    if args.out:
        about = {"suite": args.suite, "seed": args.seed, "environment": fingerprint()}
        args.out.write_text(json.dumps(about | {"rows": rows}, indent=1) + "\n")
    missed = missed_gates(rows, gates)
    for line in missed:
        print(f"not met: {line}")
    return 1 if missed else 0


def missed_gates(rows: Mapping[str, Mapping[str, Any]], gates: Mapping[str, float]) -> list[str]:
    """Return the rows whose accuracy is below its gate, or that have none."""
    accuracies = {row: float(rows.get(row, {}).get("accuracy", 0.0)) for row in gates}
    return [
        f"{row}: {accuracies[row]:.1%}, minimum {minimum:.1%}"
        for row, minimum in gates.items()
        if accuracies[row] < minimum
    ]


def _show(row: str, result: dict[str, Any], answers: Sequence[Answered], max_shown: int) -> None:
    low, high = result["interval"]
    error = f", word error {result['word_error']:.1%}" if "word_error" in result else ""
    print(f"{row}: {result['accuracy']:.1%} [{low:.1%}, {high:.1%}] of {result['items']}{error}")
    for answer in [answer for answer in answers if not answer.right][:max_shown]:
        item = answer.question.item
        print(
            f"    {item.speech or item.question!r}: "
            f"{answer.said[:MAX_SHOWN_CHARACTERS]!r}, not {item.answer!r}"
        )


if __name__ == "__main__":
    raise SystemExit(main())
