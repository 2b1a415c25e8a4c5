"""Ask a running server the questions of clips in realtime sessions, and judge its answers.

    python -m cookbook.ming_mini_2.thinker.evaluation.realtime_questions \
        --clips DIR --texts FILE --count 200 --out report.json

The clips are those of `clips`. Each question is sent as PCM in a session of its own that answers
aloud; the server's voice activity detection ends the turn. The transcript of the spoken answer is
judged as `suite` judges the text of a chat.
"""

import argparse
import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

from websockets.asyncio.client import connect

from cookbook.ming_mini.evaluation.spoken_answers import exchange
from cookbook.ming_mini_2.thinker.evaluation.ask import Reply
from cookbook.ming_mini_2.thinker.evaluation.bounds import BOUNDS, judge
from cookbook.ming_mini_2.thinker.evaluation.suite import (
    Answered,
    Question,
    clip_questions,
    entry,
    report,
)
from cookbook.ming_mini_2.thinker.excluded import read_excluded
from cookbook.ming_mini_2.thinker.spoken_texts import read_texts
from measurement.environment import fingerprint

TASK = "spoken_question"


def draw_questions(clips: Path, texts: Path, seed: int, count: int) -> list[Question]:
    """Return at most `count` held-out clips that ask a question."""
    drawn = clip_questions(clips, read_texts(texts), seed, count, read_excluded())
    return [question for question in drawn if question.row == TASK]


async def ask_all(url: str, questions: Sequence[Question], at_once: int) -> list[Answered]:
    """Ask every question in a session of its own.

    Raises:
        RuntimeError: A session reports an error.
    """
    semaphore = asyncio.Semaphore(at_once)

    async def ask(question: Question) -> Answered:
        assert question.clip is not None
        async with (
            semaphore,
            connect(f"{url}/v1/realtime", max_size=None, proxy=None) as connection,
        ):
            transcript, _ = await exchange(connection, question.clip)
        return Answered(question, Reply(transcript.strip()))

    return await asyncio.gather(*map(ask, questions))


def main() -> int:
    """Ask, write a report, and return 1 if the bound is not met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="ws://127.0.0.1:8000")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--clips", type=Path, required=True, help="folder of clips")
    parser.add_argument("--texts", type=Path, required=True, help="what the clips say")
    parser.add_argument("--answers", type=Path, help="file for all answers")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    questions = draw_questions(args.clips, args.texts, args.seed, args.count)
    answers = asyncio.run(ask_all(args.url, questions, args.at_once))
    if args.answers:
        args.answers.write_text("".join(f"{json.dumps(entry(one))}\n" for one in answers))
    rows = report(answers)
    print(json.dumps(rows))
    if args.out:
        about = {"seed": args.seed, "environment": fingerprint()}
        args.out.write_text(json.dumps(about | {"rows": rows}, indent=1) + "\n")
    (judgement,) = judge(rows, [bound for bound in BOUNDS if TASK in bound.rows])
    print(judgement)
    return 0 if judgement.is_met else 1


if __name__ == "__main__":
    raise SystemExit(main())
