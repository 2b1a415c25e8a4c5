"""Measure the thinker of a running server on fresh held-out items, through its own routes.

    python -m cookbook.ming_mini_2.thinker.evaluation.suite --url http://127.0.0.1:8000 \
        --clips DIR --texts FILE --count 100 --out report.json

Every item is of the held-out split. Clips are written down through `/v1/audio/transcriptions` with
its default settings; all else is asked through `/v1/chat/completions`. Functions are offered twice:
left to the model (automatic), and with `tool_choice: required` (forced).
"""

import argparse
import asyncio
import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import httpx
import numpy as np

from cookbook.ming_mini.lexicon import WORDNET, Lexicon, read_lexicon
from cookbook.ming_mini.thinker.checks import word_errors, words
from cookbook.ming_mini.thinker.items import Item
from cookbook.ming_mini.thinker.tasks import Kind
from cookbook.ming_mini_2.thinker.clip_folder import SpokenClip, clips_from
from cookbook.ming_mini_2.thinker.clip_tasks import clip_items
from cookbook.ming_mini_2.thinker.dialog import DialogItem
from cookbook.ming_mini_2.thinker.evaluation.ask import (
    Reply,
    ask_chat,
    chat_body,
    is_right_reply,
    transcribe,
)
from cookbook.ming_mini_2.thinker.evaluation.bounds import judge
from cookbook.ming_mini_2.thinker.excluded import Excluded, read_excluded
from cookbook.ming_mini_2.thinker.spoken_texts import SpokenText, read_texts
from cookbook.ming_mini_2.thinker.tasks import groups, select
from measurement.environment import fingerprint
from measurement.intervals import bootstrap_interval, wilson_interval
from measurement.media_files import encode_wav

KINDS: tuple[Kind, ...] = ("text", "picture", "film")
MAX_DRAWN = 400
"""The most groups of a kind to draw for each item of a row: some tasks are rare."""


@dataclass(frozen=True)
class Question:
    """An item to ask, the row that it counts in, and its clip, int16 [n] at 16 kHz."""

    row: str
    item: Item
    clip: np.ndarray | None = None
    forced: bool = False


@dataclass(frozen=True)
class Answered:
    """A question with its reply."""

    question: Question
    reply: Reply

    @property
    def is_right(self) -> bool:
        """Return whether the reply answers the question."""
        return is_right_reply(self.question.item, self.reply)


def drawn_questions(
    seed: int,
    count: int,
    lexicon: Lexicon,
    excluded: Excluded,
    kinds: Sequence[Kind] = KINDS,
    tasks: Collection[str] = (),
) -> Iterator[Question]:
    """Yield at most `count` questions of every task of these kinds; with `tasks`, of those only."""
    rng = Random(f"suite {seed}")
    for kind in kinds:
        stream = groups(kind, f"suite {seed}", lexicon, "held_out", excluded)
        asked = dict[str, int]()
        for _ in range(MAX_DRAWN if kind == "text" else 30):
            for _ in range(count):
                # One question for each picture: the intervals assume independent items.
                item = rng.choice(next(stream))
                if tasks and item.task not in tasks:
                    continue
                if asked.get(item.task, 0) < count:
                    asked[item.task] = asked.get(item.task, 0) + 1
                    yield from _questions_of(item)
            if asked and min(asked.values()) >= count:
                break


def _questions_of(item: Item) -> Iterator[Question]:
    if isinstance(item, DialogItem) and item.calls:
        plain = replace(item, thinking=False)
        yield Question("tool_call, automatic", plain)
        yield Question("tool_call, forced", plain, forced=True)
    else:
        yield Question(item.task, item)


def clip_questions(
    folder: Path, texts: dict[str, SpokenText], seed: int, count: int, excluded: Excluded
) -> Iterator[Question]:
    """Yield at most `count` held-out clips to write down and `count` to answer."""
    rng, asked = Random(f"clips {seed}"), dict[str, int]()
    for clip in clips_from(folder, rng.randrange(2**30)):
        for item in select(clip_items(clip.text, texts, rng), "held_out", excluded):
            if asked.get(item.task, 0) < count:
                asked[item.task] = asked.get(item.task, 0) + 1
                yield _of_clip(item, clip)


def _of_clip(item: Item, clip: SpokenClip) -> Question:
    return Question(item.task, item, clip.at_16khz())


async def ask_all(url: str, questions: Sequence[Question], at_once: int) -> list[Answered]:
    """Ask all questions. Raises `httpx.HTTPStatusError` if the server rejects one."""
    semaphore = asyncio.Semaphore(at_once)
    async with httpx.AsyncClient(base_url=url, timeout=120.0) as client:
        models = (await client.get("/v1/models")).raise_for_status().json()
        model = models["data"][0]["id"]

        async def ask(question: Question) -> Answered:
            async with semaphore:
                return Answered(question, await _ask(client, model, question))

        return await asyncio.gather(*map(ask, questions))


async def _ask(client: httpx.AsyncClient, model: str, question: Question) -> Reply:
    if question.item.task == "transcribe" and question.clip is not None:
        return await transcribe(client, model, encode_wav(question.clip))
    body = chat_body(question.item, question.clip, question.forced)
    return await ask_chat(client, body | {"model": model})


def entry(answer: Answered) -> dict[str, Any]:
    """Return an answer as the file of all answers has it."""
    item = answer.question.item
    shapes = item.scene.shapes if item.scene else ()
    return {
        "row": answer.question.row,
        "question": item.speech or item.question,
        "wanted": item.answer,
        "said": answer.reply.text,
        "calls": answer.reply.calls,
        "right": answer.is_right,
        "media_first": item.media_first,
        "shapes": [(one.colour, one.shape, one.cell) for one in shapes],
    }


def report(answers: Sequence[Answered]) -> dict[str, dict[str, Any]]:
    """Return the accuracy of every row, and the word error of transcripts."""
    rows: dict[str, list[Answered]] = {}
    for answer in answers:
        rows.setdefault(answer.question.row, []).append(answer)
    return {row: _row(found) for row, found in sorted(rows.items())}


def _row(answers: Sequence[Answered]) -> dict[str, Any]:
    right = sum(answer.is_right for answer in answers)
    result: dict[str, Any] = {
        "items": len(answers),
        "accuracy": right / len(answers),
        "interval": wilson_interval(right, len(answers)),
    }
    if answers[0].question.item.check == "words":
        pairs = [_errors(answer) for answer in answers]
        result["word_error"] = sum(wrong for wrong, _ in pairs) / sum(count for _, count in pairs)
        result["word_error_interval"] = bootstrap_interval(pairs)
    return result


def _errors(answer: Answered) -> tuple[int, int]:
    expected = answer.question.item.answer
    return word_errors(expected, answer.reply.text), len(words(expected))


def main() -> int:
    """Ask, write a report, and return 1 if a bound is not met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100, help="items for each row")
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--clips", type=Path, required=True, help="folder of clips")
    parser.add_argument("--texts", type=Path, required=True, help="what the clips say")
    parser.add_argument("--only-clips", action="store_true")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="besides clips")
    parser.add_argument("--tasks", nargs="+", default=(), help="no clips, and only of these")
    parser.add_argument(
        "--answers", type=Path, help="file for all answers, read by `look_alikes` and `compare`"
    )
    parser.add_argument("--lexicon", type=Path, default=WORDNET)
    parser.add_argument("--show", type=int, default=1, help="wrong answers to show for each row")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    excluded = read_excluded()
    asked: list[Question] = []
    if not args.tasks:
        texts = read_texts(args.texts)
        asked += clip_questions(args.clips, texts, args.seed, args.count, excluded)
    if not args.only_clips:
        lexicon = read_lexicon(args.lexicon)
        asked += drawn_questions(args.seed, args.count, lexicon, excluded, args.kinds, args.tasks)
    answers = asyncio.run(ask_all(args.url, asked, args.at_once))
    if args.answers:
        args.answers.write_text("".join(f"{json.dumps(entry(one))}\n" for one in answers))
    rows = report(answers)
    for row, result in rows.items():
        print(f"{row}: {json.dumps(result)}")
        _show([one for one in answers if one.question.row == row and not one.is_right][: args.show])
    judgements = judge(rows)
    print("\n".join(map(str, judgements)))
    if args.out:
        about = {"seed": args.seed, "environment": fingerprint()}
        args.out.write_text(json.dumps(about | {"rows": rows}, indent=1) + "\n")
    return 0 if all(one.is_met for one in judgements) else 1


def _show(answers: Sequence[Answered]) -> None:
    for answer in answers:
        item = answer.question.item
        wanted = item.calls if isinstance(item, DialogItem) and item.calls else item.answer
        print(f"    {item.speech or item.question!r}: {answer.reply}, not {wanted!r}")


if __name__ == "__main__":
    raise SystemExit(main())
