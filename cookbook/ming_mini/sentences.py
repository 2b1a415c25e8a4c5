"""English sentences from a seed, in the form that the talker receives.

That form is the output of the product's text front end: numbers in words, no markup. A hash of the
words separates training and held-out sentences.
"""

import hashlib
import re
from collections.abc import Callable, Iterator
from itertools import islice
from random import Random
from typing import Literal

from cookbook.ming_mini import grammar
from cookbook.ming_mini.lexicon import Lexicon
from cookbook.ming_mini.numbers import ONES, number_words
from cookbook.ming_mini.small_talk import draw_talk

Split = Literal["train", "held_out"]
HELD_OUT_SHARE = 20
"""One sentence in this many is held out."""
MAX_WORDS = 45

GREETINGS = (
    "Hello",
    "Hi",
    "Good morning",
    "Good afternoon",
    "Good evening",
    "Good night",
    "Goodbye",
    "See you soon",
    "Thank you",
    "Thanks",
    "Welcome",
    "Hello there",
    "Nice to meet you",
    "You are welcome",
    "Take care",
    "Yes",
    "No",
    "Sure",
    "Of course",
    "I see",
    "Sorry",
    "Excuse me",
    "Please wait",
    "Well done",
    "All right",
)
CHAT = (
    "How are you today?",
    "How can I help you?",
    "I am a small model, and I speak from a laptop.",
    "What would you like to know?",
    "I do not know that.",
    "I am not sure about that.",
    "I cannot do that, but I can try something else.",
    "That is a good question.",
    "Let me think about it.",
    "Could you say that again?",
    "I am fine, thank you.",
    "Have a nice day!",
    "Is there anything else?",
    "It was a pleasure to talk to you.",
)
_FRIENDS = """
anna peter maria david lucy thomas helen george mary john james susan robert linda michael sarah
william emma charles kate daniel laura mark julia paul alice kevin rose simon jane
"""
FRIENDS = _FRIENDS.split()
_MONTHS = """
January February March April May June July August September October November December
"""
MONTHS = _MONTHS.split()
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_OBJECTS = """
apple ball bird boat book bottle box boy bus cake car cat chair clock coin cow cup dog egg fish
flower girl hat horse house key leaf letter man picture pencil phone plate rabbit sheep shirt
shoe table ticket train tree umbrella woman word
"""
OBJECTS = _OBJECTS.split()
PLURALS = {"man": "men", "woman": "women", "fish": "fish", "sheep": "sheep", "leaf": "leaves"}
SIDES = ("on the left", "on the right", "at the top", "at the bottom", "in the middle")
SIZES = ("small", "large", "big", "little", "tiny", "long", "short", "old", "new")

Maker = Callable[[Random, Lexicon], str]
Mix = tuple[tuple[Maker, float], ...]


def sentences(
    seed: int, lexicon: Lexicon, split: Split = "train", mix: Mix | None = None
) -> Iterator[str]:
    """Yield texts of 1 to 45 words of one split forever; they follow from the seed and the mix."""
    rng, mix = Random(seed), mix or KINDS
    while True:
        count = rng.randint(2, 5) if rng.random() < 0.15 else 1
        # The segmenter cuts pieces of several sentences from a long answer.
        text = " ".join(draw_sentence(rng, lexicon, mix) for _ in range(count))
        if split_of(text) == split and len(text.split()) <= MAX_WORDS:
            yield text


def take(count: int, seed: int, lexicon: Lexicon, split: Split = "train") -> list[str]:
    """Return the first `count` of `sentences`."""
    return list(islice(sentences(seed, lexicon, split), count))


def held_out(count: int, seed: int, lexicon: Lexicon) -> list[str]:
    """Return `count` held-out sentences of 4 to 12 words."""
    texts = sentences(seed, lexicon, "held_out")
    return list(islice((text for text in texts if 4 <= len(text.split()) <= 12), count))


def commands(count: int, seed: int, split: Split) -> list[str]:
    """Return `count` different commands of the grammar, in lower case, from one split."""
    rng, found = Random(seed), dict[str, None]()
    while len(found) < count:
        text = grammar.command(rng)
        if split_of(text) == split:
            found[text] = None
    return list(found)


def split_of(text: str) -> Split:
    """Return the split of a text.

    Its words determine it, whatever their case and punctuation.
    """
    words = " ".join(re.findall(r"[a-z']+", text.lower()))
    digest = hashlib.sha256(words.encode()).digest()
    return "held_out" if int.from_bytes(digest[:4], "big") % HELD_OUT_SHARE == 0 else "train"


def draw_sentence(rng: Random, lexicon: Lexicon, mix: Mix | None = None) -> str:
    """Draw one sentence of any kind."""
    makers, weights = zip(*(mix or KINDS), strict=True)
    return punctuate(rng.choices(makers, weights)[0](rng, lexicon))


def punctuate(text: str) -> str:
    """Return `text` with a capital letter in front and a mark at the end."""
    text = re.sub(r"\bi\b", "I", text.strip())
    text = re.sub(r"\b([aA]) (?=[aeiou])", r"\1n ", text)
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else text + "."


def _number(rng: Random) -> str:
    """Draw a number in words; small ones are likely."""
    top = rng.choice((10, 20, 100, 100, 1000, 1000, 10_000, 1_000_000))
    return number_words(rng.randrange(top))


def _plural(noun: str) -> str:
    if noun in PLURALS:
        return PLURALS[noun]
    if noun.endswith(("s", "x", "ch", "sh")):
        return noun + "es"
    if noun.endswith("y") and noun[-2:-1] not in tuple("aeiou"):
        return noun[:-1] + "ies"
    return noun + "s"


def _third(verb: str) -> str:
    irregular = {"be": "is", "have": "has", "do": "does", "go": "goes"}
    return irregular.get(verb) or _plural(verb)


def _name(rng: Random) -> str:
    return rng.choice(FRIENDS).capitalize()


def greeting(rng: Random, lexicon: Lexicon) -> str:
    """Draw a greeting, perhaps with a name."""
    text = rng.choice(GREETINGS)
    return f"{text}, {_name(rng)}" if rng.random() < 0.4 else text + rng.choice((".", "!"))


def chat(rng: Random, lexicon: Lexicon) -> str:
    """Draw small talk, or an offer to help with something."""
    if rng.random() < 0.4:
        return rng.choice(CHAT)
    verb, noun = rng.choice(lexicon.verbs), rng.choice(lexicon.nouns)
    return rng.choice(
        (
            f"I can help you to {verb} the {noun}",
            f"Would you like to {verb} it with {_name(rng)}?",
            f"My name is {_name(rng)}, and I like the {noun}",
            f"I am sorry, I cannot {verb} that",
        )
    )


def answer(rng: Random, lexicon: Lexicon) -> str:
    """Draw the answer to a sum."""
    a, b = rng.randrange(100), rng.randrange(1, 100)
    left, right, more = number_words(a), number_words(b), number_words(a + b)
    return rng.choice(
        (
            f"The answer is {_number(rng)}",
            f"It is {_number(rng)}",
            f"{left} plus {right} is {more}",
            f"{more} minus {right} equals {left}",
            f"{left} times {right} is {number_words(a * b)}",
            f"{_name(rng)} has {left} {_plural(rng.choice(OBJECTS))} left",
            f"So {_name(rng)} pays {more} dollars and {right} cents",
            f"That is about {left} percent",
            _number(rng),
        )
    )


def picture(rng: Random, lexicon: Lexicon) -> str:
    """Draw a description of a picture."""
    colour, other = rng.sample(grammar.COLOURS, 2)
    shape, side = rng.choice(grammar.SHAPES + OBJECTS), rng.choice(SIDES)
    count, size = rng.randrange(2, 13), rng.choice(SIZES)
    several = f"{number_words(count)} {colour} {_plural(shape)}"
    return rng.choice(
        (
            f"there are {several} {side}",
            f"I see {several} and {rng.choice(('one', 'a'))} {other} {rng.choice(OBJECTS)}",
            f"the {size} {shape} is {colour}",
            f"the {colour} {shape} is {side}",
            f"the picture shows a {size} {shape} {side}",
            f"the word in the picture is {rng.choice(lexicon.nouns)}",
            f"there is no {shape} in the picture",
        )
    )


def spoken_command(rng: Random, lexicon: Lexicon) -> str:
    """Draw a command of the grammar."""
    return grammar.command(rng)


def spelling(rng: Random, lexicon: Lexicon) -> str:
    """Draw a word, letter by letter, or single letters."""
    word = rng.choice(lexicon.nouns)[:8]
    letters = rng.choice((" ", ", ")).join(word.upper())
    return rng.choice((f"{word} is spelled {letters}", f"{word}, {letters}", letters))


def calendar(rng: Random, lexicon: Lexicon) -> str:
    """Draw a day, a date or a time."""
    hour, minute = number_words(rng.randrange(1, 13)), number_words(rng.randrange(10, 60))
    day, month = rng.choice(DAYS), rng.choice(MONTHS)
    return rng.choice(
        (
            f"it is {hour} {minute} on {day}",
            f"the meeting is on {day} at {hour} o'clock",
            f"{_name(rng)} was born in {month}",
            f"it is half past {hour}",
            f"after {day} comes {rng.choice(DAYS)}",
            f"the train leaves at {hour} {minute} in the {rng.choice(('morning', 'evening'))}",
        )
    )


def statement(rng: Random, lexicon: Lexicon) -> str:
    """Draw a sentence of everyday words; grammatical, if rarely sensible."""
    one, two, three = (rng.choice(lexicon.nouns) for _ in range(3))
    verb, adjective = rng.choice(lexicon.verbs), rng.choice(lexicon.adjectives)
    adverb = rng.choice(lexicon.adverbs)
    return rng.choice(
        (
            f"the {adjective} {one} {_third(verb)} the {two}",
            f"the {one} of the {two} is {adjective}",
            f"{_name(rng)} {adverb} {_third(verb)} the {one} near the {two}",
            f"do you {verb} the {adjective} {one}?",
            f"where is the {one}, and who can {verb} it?",
            f"we {verb} {_plural(one)} and {_plural(two)} in the {three}",
            f"a {one} is not a {two}, but it can {adverb} {verb}",
            f"{adverb}, the {one} was {adjective}",
        )
    )


def phrase(rng: Random, lexicon: Lexicon) -> str:
    """Draw a usage example of the dictionary."""
    return rng.choice(lexicon.phrases)


def definition(rng: Random, lexicon: Lexicon) -> str:
    """Draw a dictionary's definition of a word."""
    return rng.choice(lexicon.definitions)


def words(rng: Random, lexicon: Lexicon) -> str:
    """Draw words in a row, which teach the sounds of letters."""
    pool = lexicon.nouns + lexicon.verbs + lexicon.adjectives + lexicon.adverbs
    chosen = [rng.choice(pool) for _ in range(rng.randint(1, 9))]
    return rng.choice((" ", " ", ", ")).join(chosen)


def digits(rng: Random, lexicon: Lexicon) -> str:
    """Draw digits one by one, as of a telephone number."""
    return " ".join(rng.choice(ONES[:10]) for _ in range(rng.randint(2, 8)))


KINDS: Mix = (
    (phrase, 30),
    (statement, 18),
    (words, 14),
    (answer, 9),
    (picture, 8),
    (spoken_command, 7),
    (chat, 4),
    (greeting, 4),
    (calendar, 3),
    (spelling, 2),
    (digits, 1),
)
"""The kinds of held-out sentences, and of the thinker's texts."""

SPOKEN: Mix = (
    (phrase, 34),
    (draw_talk, 22),
    (definition, 12),
    (statement, 8),
    (words, 6),
    (answer, 4),
    (picture, 4),
    (spoken_command, 4),
    (chat, 2),
    (greeting, 2),
    (calendar, 2),
    (spelling, 1),
    (digits, 1),
)
"""The kinds that the talker learns to say, mostly sentences as people speak."""
