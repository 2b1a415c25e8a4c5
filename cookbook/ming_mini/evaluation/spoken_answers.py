"""A spoken question in, a spoken answer out, through a realtime session; a recogniser judges it.

    sgl-omni serve --version v1 --port 8000 &
    python -m cookbook.ming_mini.evaluation.spoken_answers --count 40 --out result.json

Fresh held-out questions of Ming-mini's whose answer is a number or a word or two, said by the
synthesizers of its training, go in as PCM; the server's voice activity detection ends the turn.
The answer's sound is heard by pocketsphinx, which chooses among the answers of many such questions
and every sum. `right` counts answers whose transcript is right, `heard` those heard as their
transcript, `heard_right` those whose sound alone is heard as the right answer. Needs flite and
espeak-ng, as the training did.
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
from cookbook.ming_mini.thinker.speech_tasks import said
from cookbook.ming_mini.thinker.tasks import groups
from measurement.environment import fingerprint
from measurement.intervals import wilson_interval
from measurement.openai_api import send_event
from measurement.pocketsphinx_recogniser import Recogniser, spoken_words

RATE = 24_000
"""Of sound in realtime sessions."""
CLIP_RATE = 16_000
ROW = "spoken_question, seen voice"
MOST_WORDS = 4
RESULT = "The answer is "
"""What stands before the result of a sum."""
ONES = " | ".join(map(number_words, range(1, 10)))
TEENS = " | ".join(map(number_words, range(10, 20)))
TENS = " | ".join(map(number_words, range(20, 100, 10)))
NUMBER = f"zero | one hundred | [one hundred] ({ONES} | {TEENS} | ({TENS}) [{ONES}])"
"""Up to 199, by a few words: a grammar of all of them is slow to follow."""
ALTERNATIVES = 150
SILENCE_S = 1.0
CHUNK = RATE // 10
SESSION = {
    "type": "realtime",
    "output_modalities": ["audio"],
    "audio": {"input": {"turn_detection": {"type": "server_vad"}}},
}

Hear = Callable[[np.ndarray], list[str]]
Knows = Callable[[str], bool]


@dataclass(frozen=True)
class Exchange:
    """A question with its right answer, the transcript of the one given, and the words that its
    sound was heard as; what they are worth."""

    question: str
    answer: str
    transcript: str
    heard: str
    right: bool
    heard_as_transcript: bool
    heard_right: bool


def spoken(answer: str) -> list[str]:
    """The words of what counts in an answer, as they are said: of a sum its result."""
    result = answer.rpartition(RESULT)[2]
    return spoken_words(said(result)) if result else []


def heard_of(words: Sequence[str]) -> list[str]:
    """What counts in the words that were heard."""
    return spoken_words(" ".join(words).rpartition(RESULT.lower())[2])


def asked(seed: int, count: int, lexicon: Lexicon, knows: Knows) -> list[Question]:
    """So many fresh questions with a short answer whose words a recogniser knows."""
    many = questions(seed, 20 * count, lexicon, (ROW,))
    return list(islice((one for one in many if _fits(one.item, knows)), count))


def _fits(item: Item, knows: Knows) -> bool:
    words = spoken(item.answer)
    return not item.accept and 0 < len(words) <= MOST_WORDS and all(map(knows, words))


def alternatives(seed: int, lexicon: Lexicon, knows: Knows, count: int = ALTERNATIVES) -> list[str]:
    """So many different answers to questions of this kind, as they are said."""
    found: dict[str, None] = {}
    for items in groups("speech", f"alternatives {seed}", lexicon, "train"):
        asking = (one for one in items if one.task == "spoken_question" and _fits(one, knows))
        found |= dict.fromkeys(" ".join(spoken(one.answer)) for one in asking)
        if len(found) >= count:
            break
    return sorted(found)


def grammar(answers: Sequence[str]) -> str:
    """A JSGF grammar of these answers, and of sums with their results. The text front end of the
    released model leaves signs as they are, so that a voice may say them or not."""
    return f"""#JSGF V1.0;
grammar answers;
public <answer> = {" | ".join(answers)} | <sum>;
<sum> = <step>+ the answer is <number>;
<step> = <number> [plus | minus | times | divided by] <number> [equals] <number>;
<number> = {NUMBER};
"""


def chunks(clip: np.ndarray) -> Iterator[str]:
    """A clip, int16 [n] at 16 kHz, and silence behind it, as what events carry."""
    sound = soxr.resample(clip.astype(np.float32) / 32768, CLIP_RATE, RATE)
    sound = np.concatenate([sound, np.zeros(int(SILENCE_S * RATE), np.float32)])
    pcm = (np.clip(sound, -1, 1) * 32767).astype("<i2")
    for start in range(0, len(pcm), CHUNK):
        yield base64.b64encode(pcm[start : start + CHUNK].tobytes()).decode()


async def exchange(connection: ClientConnection, clip: np.ndarray) -> tuple[str, np.ndarray]:
    """Say a clip; the transcript of the answer and its samples [n] at 24 kHz. Raises
    `RuntimeError` where the session reports an error."""
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
            case "response.done":
                return transcript, np.frombuffer(sound, "<i2").astype(np.float32) / 32768


def judge(question: Question, transcript: str, words: Sequence[str]) -> Exchange:
    """What an answer's transcript and sound are worth."""
    item, heard = question.item, heard_of(words)
    return Exchange(
        item.speech or "",
        item.answer,
        transcript,
        " ".join(words),
        is_right(item, transcript),
        bool(heard) and heard == spoken(transcript),
        bool(heard) and heard == spoken(item.answer),
    )


async def measure(url: str, many: Sequence[Question], hear: Hear) -> list[Exchange]:
    """Every question in a session of its own."""
    done = []
    for question in many:
        assert question.clip is not None
        async with connect(f"{url}/v1/realtime", max_size=None, proxy=None) as connection:
            transcript, sound = await exchange(connection, question.clip)
        done.append(judge(question, transcript, hear(sound)))
        print(json.dumps(asdict(done[-1])), flush=True)
    return done


def summary(done: Sequence[Exchange]) -> dict[str, Any]:
    """Counts, with the interval of those heard right."""
    right = sum(one.heard_right for one in done)
    return {
        "items": len(done),
        "right": sum(one.right for one in done),
        "heard": sum(one.heard_as_transcript for one in done),
        "heard_right": right,
        "interval": wilson_interval(right, len(done)),
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
    many = asked(args.seed, args.count, lexicon, knows)
    choices = {" ".join(spoken(one.item.answer)) for one in many}
    choices |= set(alternatives(args.seed, lexicon, knows))
    recogniser = Recogniser(grammar(sorted(choices)))
    done = asyncio.run(measure(args.url, many, lambda sound: recogniser.words(sound, RATE)))
    about = {"seed": args.seed, "alternatives": len(choices), "environment": fingerprint()}
    rows = [asdict(one) for one in done]
    result = about | {"summary": summary(done), "rows": rows}
    args.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result["summary"]))


if __name__ == "__main__":
    main()
