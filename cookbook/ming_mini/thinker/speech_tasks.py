"""Speech to write down, and spoken questions: the text tasks, said aloud."""

import re
from dataclasses import replace
from random import Random

from cookbook.ming_mini.lexicon import Lexicon
from cookbook.ming_mini.numbers import number_words
from cookbook.ming_mini.sentences import draw
from cookbook.ming_mini.thinker import arithmetic, chat, choices, text_tasks
from cookbook.ming_mini.thinker.items import Item

TRANSCRIBE = (
    "Transcribe the audio.",
    "Write down what is said.",
    "What does the speaker say?",
    "Transcribe:",
)
LONGEST_WORDS = 14
EVERYDAY = {"nouns": 500, "verbs": 200, "adjectives": 200, "adverbs": 80, "phrases": 20_000}
"""How many words of each kind are spoken: the model is small, and so is its ear."""
SIGNS = {" + ": " plus ", " - ": " minus ", " * ": " times ", " / ": " divided by "}


def everyday(lexicon: Lexicon) -> Lexicon:
    """The frequent words of a lexicon."""
    kept = {kind: getattr(lexicon, kind)[:count] for kind, count in EVERYDAY.items()}
    return replace(lexicon, **kept)


def speech_items(rng: Random, lexicon: Lexicon) -> list[Item]:
    """What can be asked about one new clip: to write it down and, if it asks, to answer."""
    if rng.random() < 0.45:
        asked = spoken_question(rng, lexicon)
        return [asked, transcription(asked.speech or "", rng, asked.about)]
    return [transcription(sentence(rng, lexicon), rng)]


def sentence(rng: Random, lexicon: Lexicon) -> str:
    """A sentence to say, not too long."""
    text = draw(rng, everyday(lexicon))
    return text if len(text.split()) <= LONGEST_WORDS else sentence(rng, lexicon)


def transcription(speech: str, rng: Random, about: str = "") -> Item:
    """Write down what is said."""
    ask, first = rng.choice(TRANSCRIBE), rng.random() < 0.5
    return Item("transcribe", ask, speech, "words", speech=speech, media_first=first, about=about)


def spoken_question(rng: Random, lexicon: Lexicon) -> Item:
    """A question that is said instead of written; nothing else is in the message."""
    maker = rng.choices(tuple(SPOKEN), tuple(SPOKEN.values()))[0]
    item = maker(rng, lexicon)
    speech = said(item.question)
    if len(speech.split()) > LONGEST_WORDS + 4 or not speech[0].isalpha():
        return spoken_question(rng, lexicon)
    return replace(item, task="spoken_question", question="", speech=speech, fixed=False)


def said(text: str) -> str:
    """A question as it is spoken: numbers and signs in words."""
    text = signs_in_words(text.replace('"', "").replace("\n", " "))
    text = re.sub(r"\d+", lambda digits: number_words(int(digits[0])), text)
    return text if text[-1] in ".?!" else f"{text}."


def signs_in_words(text: str) -> str:
    """A question with its signs in words."""
    for sign, words in SIGNS.items():
        text = text.replace(sign, words)
    return text.replace(" = ?", "?")


def _next_number(rng: Random, lexicon: Lexicon) -> Item:
    number, step = rng.randrange(1, 100), rng.choice((-1, 1))
    side = "after" if step > 0 else "before"
    ask = f"What number comes {side} {number}?"
    return Item("count", ask, f"{number + step}.", "number", about=f"{side} {number}")


SPOKEN = {
    arithmetic.sums: 4.0,
    arithmetic.word_problem: 2.0,
    choices.fact: 3.0,
    choices.yes_no: 2.0,
    text_tasks.compare: 2.0,
    _next_number: 1.0,
    text_tasks.spell: 1.0,
    chat.small_talk: 2.0,
    chat.decline: 1.0,
}
"""Text tasks that are also asked aloud, and how often."""
