"""Measure spoken answers to spoken questions in realtime sessions, with a recogniser.

    sgl-omni serve --version v1 --port 8000 &
    python -m cookbook.ming_mini.evaluation.spoken_answers --count 40 --out result.json

Fresh held-out questions with a short answer (a number, or a word or two) are spoken by the
synthesizers of the training and sent as PCM; the server's voice activity detection ends the turn.
pocketsphinx transcribes the answer's audio, with a grammar of the answers to many such questions
and of every sum. `right` counts answers with a right transcript, `heard` those recognised as their
transcript, `heard_right` those whose audio alone is recognised as the right answer. Needs flite and
espeak-ng, like the training.
"""

import argparse
import asyncio
import base64
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import soxr
from websockets.asyncio.client import ClientConnection, connect

from cookbook.ming_mini.evaluation.quality import Question, questions
from cookbook.ming_mini.lexicon import WORDNET, Lexicon, read_lexicon
from cookbook.ming_mini.numbers import number_words
from cookbook.ming_mini.thinker.checks import is_right
from cookbook.ming_mini.thinker.items import Item
from cookbook.ming_mini.thinker.speech_tasks import spoken_form
from cookbook.ming_mini.thinker.tasks import groups
from measurement.environment import fingerprint
from measurement.intervals import wilson_interval
from measurement.openai_api import send_event
from measurement.pocketsphinx_recogniser import Recogniser, spoken_words

RATE = 24_000
"""Of sound in realtime sessions."""
CLIP_RATE = 16_000
ROW = "spoken_question, seen voice"
MAX_WORDS = 4
RESULT = "The answer is "
"""The text before the result of a sum."""
ONES = " | ".join(map(number_words, range(1, 10)))
TEENS = " | ".join(map(number_words, range(10, 20)))
TENS = " | ".join(map(number_words, range(20, 100, 10)))
NUMBER = f"zero | one hundred | [one hundred] ({ONES} | {TEENS} | ({TENS}) [{ONES}])"
"""Numbers to 199, in a few rules: a grammar of all of them is slow to decode."""
ALTERNATIVES = 150
SILENCE_S = 1.0
CHUNK = RATE // 10
SESSION = {
    "type": "realtime",
    "output_modalities": ["audio"],
    "audio": {"input": {"turn_detection": {"type": "server_vad"}}},
}

Transcribe = Callable[[np.ndarray], list[str]]
Knows = Callable[[str], bool]


@dataclass(frozen=True)
class Exchange:
    """A question with its right answer and the answer that was given.

    Of the given answer it has the transcript, and the words that were recognised. The last three
    fields are the verdicts.
    """

    question: str
    answer: str
    transcript: str
    heard: str
    right: bool
    heard_as_transcript: bool
    heard_right: bool


def spoken_answer(answer: str) -> list[str]:
    """Return the words of the relevant part of an answer, as they are spoken.

    Of a sum that is its result.
    """
    result = answer.rpartition(RESULT)[2]
    return spoken_words(spoken_form(result)) if result else []


def relevant_words(words: Sequence[str]) -> list[str]:
    """Return the relevant part of the recognised words."""
    return spoken_words(" ".join(words).rpartition(RESULT.lower())[2])


def draw_questions(seed: int, count: int, lexicon: Lexicon, knows: Knows) -> list[Question]:
    """Draw `count` fresh questions with a short answer whose words the recogniser knows."""
    candidates = questions(seed, 20 * count, lexicon, (ROW,))
    return list(islice((question for question in candidates if _fits(question.item, knows)), count))


def _fits(item: Item, knows: Knows) -> bool:
    words = spoken_answer(item.answer)
    return item.check != "contains" and 0 < len(words) <= MAX_WORDS and all(map(knows, words))


def draw_alternatives(
    seed: int, lexicon: Lexicon, knows: Knows, count: int = ALTERNATIVES
) -> list[str]:
    """Draw `count` different answers to such questions, as they are spoken."""
    found: dict[str, None] = {}
    for items in groups("speech", f"alternatives {seed}", lexicon, "train"):
        asking = (one for one in items if one.task == "spoken_question" and _fits(one, knows))
        found |= dict.fromkeys(" ".join(spoken_answer(one.answer)) for one in asking)
        if len(found) >= count:
            break
    return sorted(found)


def grammar(answers: Sequence[str]) -> str:
    """Return a JSGF grammar of these answers, and of sums with their results.

    The text front end of the released model keeps signs, so a voice may speak them or not.
    """
    return f"""#JSGF V1.0;
grammar answers;
public <answer> = {" | ".join(answers)} | <sum>;
<sum> = <step>+ the answer is <number>;
<step> = <number> [plus | minus | times | divided by] <number> [equals] <number>;
<number> = {NUMBER};
"""


def chunks(clip: np.ndarray) -> Iterator[str]:
    """Yield the payloads of events for a clip, int16 [n] at 16 kHz, followed by silence."""
    sound = soxr.resample(clip.astype(np.float32) / 32768, CLIP_RATE, RATE)
    sound = np.concatenate([sound, np.zeros(int(SILENCE_S * RATE), np.float32)])
    pcm = (np.clip(sound, -1, 1) * 32767).astype("<i2")
    for start in range(0, len(pcm), CHUNK):
        yield base64.b64encode(pcm[start : start + CHUNK].tobytes()).decode()


async def exchange(connection: ClientConnection, clip: np.ndarray) -> tuple[str, np.ndarray]:
    """Send a clip, and return the transcript of the answer and its samples [n] at 24 kHz.

    After a pause in the clip the session may begin to answer, and cancels that when it goes on.

    Raises:
        RuntimeError: The session reports an error.
    """
    await send_event(connection, "session.update", session=SESSION)
    for audio in chunks(clip):
        await send_event(connection, "input_audio_buffer.append", audio=audio)
    transcript, sound = "", b""
    while True:
        event: dict[str, Any] = json.loads(await connection.recv())
        match event["type"]:
            case "error":
                raise RuntimeError(event["error"]["message"])
            case "response.output_audio.delta":
                sound += base64.b64decode(event["delta"])
            case "response.output_audio_transcript.delta":
                transcript += event["delta"]
            case "response.done" if event["response"]["status"] == "cancelled":
                transcript, sound = "", b""
            case "response.done":
                return transcript, np.frombuffer(sound, "<i2").astype(np.float32) / 32768


def judge_exchange(question: Question, transcript: str, words: Sequence[str]) -> Exchange:
    """Judge the transcript and the audio of an answer."""
    item, heard = question.item, relevant_words(words)
    return Exchange(
        item.speech or "",
        item.answer,
        transcript,
        " ".join(words),
        is_right(item, transcript),
        bool(heard) and heard == spoken_answer(transcript),
        bool(heard) and heard == spoken_answer(item.answer),
    )


async def measure(
    url: str, questions_to_ask: Sequence[Question], hear: Transcribe
) -> list[Exchange]:
    """Ask every question in a session of its own."""
    exchanges = []
    for question in questions_to_ask:
        assert question.clip is not None
        async with connect(f"{url}/v1/realtime", max_size=None, proxy=None) as connection:
            transcript, sound = await exchange(connection, question.clip)
        exchanges.append(judge_exchange(question, transcript, hear(sound)))
        print(json.dumps(asdict(exchanges[-1])), flush=True)
    return exchanges


def summarise(exchanges: Sequence[Exchange]) -> dict[str, Any]:
    """Return the counts, with the interval of `heard_right`."""
    right = sum(exchange_record.heard_right for exchange_record in exchanges)
    return {
        "items": len(exchanges),
        "right": sum(exchange_record.right for exchange_record in exchanges),
        "heard": sum(exchange_record.heard_as_transcript for exchange_record in exchanges),
        "heard_right": right,
        "interval": wilson_interval(right, len(exchanges)),
    }


def main() -> None:
    """Ask, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--url", default="ws://127.0.0.1:8000", help="of a running server")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lexicon", type=Path, default=WORDNET)
    parser.add_argument("--out", type=Path, required=True, help="where to write the JSON")
    args = parser.parse_args()
    lexicon = read_lexicon(args.lexicon)
    knows = Recogniser().knows
    questions_to_ask = draw_questions(args.seed, args.count, lexicon, knows)
    answers = {" ".join(spoken_answer(question.item.answer)) for question in questions_to_ask}
    answers |= set(draw_alternatives(args.seed, lexicon, knows))
    recogniser = Recogniser(grammar(sorted(answers)))
    exchanges = asyncio.run(
        measure(args.url, questions_to_ask, lambda sound: recogniser.words(sound, RATE))
    )
    about = {"seed": args.seed, "alternatives": len(answers), "environment": fingerprint()}
    rows = [asdict(question) for question in exchanges]
    result = about | {"summary": summarise(exchanges), "rows": rows}
    args.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result["summary"]))


if __name__ == "__main__":
    main()
