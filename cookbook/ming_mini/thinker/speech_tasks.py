"""Speech to transcribe, and spoken questions: the text tasks, spoken."""

import re
from dataclasses import replace
from random import Random

from cookbook.ming_mini.lexicon import Lexicon
from cookbook.ming_mini.numbers import number_words
from cookbook.ming_mini.sentences import draw_sentence
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
"""How many words of each kind are spoken; the model and its audio encoder are small."""
SIGNS = {" + ": " plus ", " - ": " minus ", " * ": " times ", " / ": " divided by "}


def everyday_words(lexicon: Lexicon) -> Lexicon:
    """Return the frequent words of a lexicon."""
    kept = {kind: getattr(lexicon, kind)[:count] for kind, count in EVERYDAY.items()}
    return replace(lexicon, **kept)


def speech_items(rng: Random, lexicon: Lexicon) -> list[Item]:
    """Draw the items of one new clip: its transcription and, if it is a question, its answer."""
    if rng.random() < 0.45:
        asked = spoken_question(rng, lexicon)
        return [asked, transcription(asked.speech or "", rng, asked.about)]
    return [transcription(sentence(rng, lexicon), rng)]


def sentence(rng: Random, lexicon: Lexicon) -> str:
    """Draw a sentence to say, not too long."""
    text = draw_sentence(rng, everyday_words(lexicon))
    return text if len(text.split()) <= LONGEST_WORDS else sentence(rng, lexicon)


def transcription(speech: str, rng: Random, about: str = "") -> Item:
    """Build an item to transcribe speech."""
    ask, first = rng.choice(TRANSCRIBE), rng.random() < 0.5
    return Item("transcribe", ask, speech, "words", speech=speech, media_first=first, about=about)


def spoken_question(rng: Random, lexicon: Lexicon) -> Item:
    """Draw a question that is spoken instead of written; the message has nothing else."""
    maker = rng.choices(tuple(SPOKEN), tuple(SPOKEN.values()))[0]
    item = maker(rng, lexicon)
    speech = spoken_form(item.question)
    if len(speech.split()) > LONGEST_WORDS + 4 or not speech[0].isalpha():
        return spoken_question(rng, lexicon)
    return replace(item, task="spoken_question", question="", speech=speech, fixed=False)


def spoken_form(text: str) -> str:
    """Return a question as it is spoken: numbers and signs in words."""
    text = signs_in_words(text.replace('"', "").replace("\n", " "))
    text = re.sub(r"\d+", lambda digits: number_words(int(digits[0])), text)
    return text if text[-1] in ".?!" else f"{text}."


def signs_in_words(text: str) -> str:
    """Return a question with its signs in words, with or without blanks around them."""
    text = re.sub(r"(?<=\d)([-+*/])(?=\d)", r" \1 ", text)
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
"""Text tasks that are also spoken, and their relative frequencies."""
