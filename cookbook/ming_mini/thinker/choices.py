"""Yes or no, and multiple choice in the form of MMMU's questions."""

from collections.abc import Sequence
from random import Random

from cookbook.ming_mini.lexicon import Lexicon
from cookbook.ming_mini.sentences import DAYS, MONTHS
from cookbook.ming_mini.thinker.items import Item
from cookbook.ming_mini.thinker.words import KINDS, OPPOSITES

INSTRUCTIONS = (
    "Answer with the option's letter from the given choices directly.",
    "Answer with the letter.",
)
LETTERS = "ABCD"


def article(noun: str) -> str:
    """The noun behind its article."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def options(question: str, right: str, wrong: Sequence[str], rng: Random) -> tuple[str, str]:
    """A question with its choices in any order, and the letter of the right one."""
    choices = [right, *wrong]
    rng.shuffle(choices)
    lines = [f"{letter}. {choice}" for letter, choice in zip(LETTERS, choices, strict=False)]
    text = "\n".join((question, *lines, rng.choice(INSTRUCTIONS)))
    return text, LETTERS[choices.index(right)]


def choice(rng: Random, lexicon: Lexicon) -> Item:
    """A text question with three or four choices."""
    wrong = rng.randint(2, 3)
    question, right, others = rng.choice((_of_kind, _opposite, _after))(rng, wrong)
    text, letter = options(question, right, others, rng)
    return Item("choice", text, letter, "letter")


def _of_kind(rng: Random, wrong: int) -> tuple[str, str, list[str]]:
    kind, *others = rng.sample(sorted(KINDS), wrong + 1)
    question = f"Which of these is {article(kind)}?"
    return question, _member(rng, kind, others), [_member(rng, one, [kind]) for one in others]


def _member(rng: Random, kind: str, others: Sequence[str]) -> str:
    """A word of the kind that is of none of the others: an orange is a fruit and a colour."""
    excluded = {word for other in others for word in KINDS[other]}
    return rng.choice([word for word in KINDS[kind] if word not in excluded])


def _opposite(rng: Random, wrong: int) -> tuple[str, str, list[str]]:
    pair, *others = rng.sample(OPPOSITES, wrong + 1)
    shown, right = rng.sample(pair, 2)
    words = [rng.choice(other) for other in others]
    if right in words or shown in words:
        return _opposite(rng, wrong)
    return f"What is the opposite of {shown}?", right, words


def _after(rng: Random, wrong: int) -> tuple[str, str, list[str]]:
    row = rng.choice((DAYS, MONTHS))
    place, step = rng.randrange(len(row)), rng.choice((-1, 1))
    right = row[(place + step) % len(row)]
    others = rng.sample([one for one in row if one != right], wrong)
    return f"What comes {'after' if step > 0 else 'before'} {row[place]}?", right, others


def yes_no(rng: Random, lexicon: Lexicon) -> Item:
    """A question about kinds, numbers or letters."""
    question, true = rng.choice((_is_kind, _is_even, _has_letter))(rng, lexicon)
    return Item("yes_no", question, "Yes." if true else "No.")


def _is_kind(rng: Random, lexicon: Lexicon) -> tuple[str, bool]:
    kind, other = rng.sample(sorted(KINDS), 2)
    true = rng.random() < 0.5
    word = _member(rng, kind if true else other, [other if true else kind])
    return f"Is {word} {article(kind)}?", true


def _is_even(rng: Random, lexicon: Lexicon) -> tuple[str, bool]:
    number, even = rng.randrange(1000), rng.random() < 0.5
    return f"Is {number} an {'even' if even else 'odd'} number?", (number % 2 == 0) == even


def _has_letter(rng: Random, lexicon: Lexicon) -> tuple[str, bool]:
    word = rng.choice(lexicon.nouns[:600])
    inside = rng.random() < 0.5
    letters = sorted(set(word) if inside else set("abcdefghilmnoprstu") - set(word))
    letter = rng.choice(letters)
    return f'Is there the letter {letter.upper()} in "{word}"?', letter in word


def fact(rng: Random, lexicon: Lexicon) -> Item:
    """A small piece of knowledge in a word."""
    question, right, _ = rng.choice((_opposite, _after, _after))(rng, 1)
    return Item("fact", question, f"{right.capitalize()}.", fixed=True)
