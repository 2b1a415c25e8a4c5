"""Yes-or-no questions, and multiple choice in the form of MMMU's questions."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from cookbook.ming_mini.lexicon import Lexicon
from cookbook.ming_mini.sentences import DAYS, MONTHS
from cookbook.ming_mini.thinker.items import Item, with_reason
from cookbook.ming_mini.thinker.words import KINDS, OPPOSITES

INSTRUCTIONS = (
    "Answer with the option's letter from the given choices directly.",
    "Answer with the letter.",
)
IN_WORDS = "Answer with the choice itself."
LETTERS = "ABCD"


def article(noun: str) -> str:
    """Return the noun after its article."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def options(question: str, right: str, wrong: Sequence[str], rng: Random) -> tuple[str, str]:
    """Return a question with shuffled choices, and the letter of the right one."""
    choices = [right, *wrong]
    rng.shuffle(choices)
    lines = [f"{letter}. {choice}" for letter, choice in zip(LETTERS, choices, strict=False)]
    text = "\n".join((question, *lines, rng.choice(INSTRUCTIONS)))
    return text, LETTERS[choices.index(right)]


@dataclass(frozen=True)
class Quiz:
    """A question with its right answer and wrong ones; `about` is that of an item."""

    question: str
    right: str
    wrong: Sequence[str]
    about: str = ""


def choice(rng: Random, lexicon: Lexicon) -> Item:
    """Draw a text question with three or four choices.

    The knowledge it needs is taught in other items: only the choices and their order are held out.
    """
    quiz = _quiz(rng)
    text, letter = options(quiz.question, quiz.right, quiz.wrong, rng)
    return Item("choice", text, letter, "letter", about=quiz.about)


def option(rng: Random, lexicon: Lexicon) -> Item:
    """Draw a question about a list of choices: from letter to text and back, or an answer in words.

    A letter alone teaches little, because it is right by chance so often.
    """
    quiz = _quiz(rng)
    lines = options(quiz.question, quiz.right, quiz.wrong, rng)[0].split("\n")[1:-1]
    letter, shown = rng.choice(lines).split(". ")
    listed = "\n".join(lines)
    match rng.randrange(4):
        case 0:
            return Item("option", f"Which letter has {shown}?\n{listed}", letter, "letter")
        case 1:
            return Item("option", f"What is choice {letter}?\n{listed}", shown)
        case _:
            ask = f"{quiz.question}\n{listed}\n{IN_WORDS}"
            return Item("option", ask, quiz.right, about=quiz.about)


def _quiz(rng: Random) -> Quiz:
    return rng.choice((_of_kind, _opposite, _after, _most, _sum))(rng, rng.randint(2, 3))


def _of_kind(rng: Random, wrong: int) -> Quiz:
    kind, *others = rng.sample(sorted(KINDS), wrong + 1)
    question = f"Which of these is {article(kind)}?"
    wrong_ones = [_member(rng, one, [kind]) for one in others]
    return Quiz(question, _member(rng, kind, others), wrong_ones)


def _member(rng: Random, kind: str, others: Sequence[str]) -> str:
    """Pick a word of the kind that is of none of the others: an orange is a fruit and a colour."""
    excluded = {word for other in others for word in KINDS[other]}
    return rng.choice([word for word in KINDS[kind] if word not in excluded])


def _opposite(rng: Random, wrong: int) -> Quiz:
    pair, *others = rng.sample(OPPOSITES, wrong + 1)
    shown, right = rng.sample(pair, 2)
    words = [rng.choice(other) for other in others]
    if right in words or shown in words:
        return _opposite(rng, wrong)
    return Quiz(f"What is the opposite of {shown}?", right, words)


def _after(rng: Random, wrong: int) -> Quiz:
    row = rng.choice((DAYS, MONTHS))
    place, step = rng.randrange(len(row)), rng.choice((-1, 1))
    right = row[(place + step) % len(row)]
    others = rng.sample([one for one in row if one != right], wrong)
    return Quiz(f"What comes {'after' if step > 0 else 'before'} {row[place]}?", right, others)


def _most(rng: Random, wrong: int) -> Quiz:
    numbers = sorted(rng.sample(range(rng.choice((20, 100, 1000))), wrong + 1))
    word, place = rng.choice((("largest", -1), ("smallest", 0)))
    right = numbers.pop(place)
    return Quiz(f"Which number is the {word}?", str(right), [str(one) for one in numbers])


def _sum(rng: Random, wrong: int) -> Quiz:
    one, other = rng.randint(2, 20), rng.randint(2, 20)
    right = one + other
    near = [right + step for step in (-10, -2, -1, 1, 2, 10) if right + step > 0]
    others = [str(number) for number in rng.sample(near, wrong)]
    return Quiz(f"What is {one} + {other}?", str(right), others, about=f"{one} + {other}")


def yes_no(rng: Random, lexicon: Lexicon, explain: bool = False) -> Item:
    """Draw a question about kinds, numbers or letters.

    With `explain`, an answer about kinds first says of which one the thing is: "Milk is a drink, so
    no." The short answer is right, too.
    """
    question, true, reason = rng.choice((_is_kind, _is_even, _has_letter))(rng, lexicon)
    short = "Yes." if true else "No."
    item = Item("yes_no", question, short)
    return with_reason(item, f"{reason}, so {short.lower()}", explain) if reason else item


def explained_yes_no(rng: Random, lexicon: Lexicon) -> Item:
    """Ask `yes_no` for an answer that gives its reason."""
    return yes_no(rng, lexicon, explain=True)


def _is_kind(rng: Random, lexicon: Lexicon) -> tuple[str, bool, str]:
    kind, other = rng.sample(sorted(KINDS), 2)
    true = rng.random() < 0.5
    own, another = (kind, other) if true else (other, kind)
    word = _member(rng, own, [another])
    reason = f"{word[0].upper()}{word[1:]} is {article(own)}"
    return f"Is {word} {article(kind)}?", true, reason


def _is_even(rng: Random, lexicon: Lexicon) -> tuple[str, bool, str]:
    number, even = rng.randrange(1000), rng.random() < 0.5
    question = f"Is {number} an {'even' if even else 'odd'} number?"
    return question, (number % 2 == 0) == even, ""


def _has_letter(rng: Random, lexicon: Lexicon) -> tuple[str, bool, str]:
    word = rng.choice(lexicon.nouns[:600])
    inside = rng.random() < 0.5
    letters = sorted(set(word) if inside else set("abcdefghilmnoprstu") - set(word))
    letter = rng.choice(letters)
    return f'Is there the letter {letter.upper()} in "{word}"?', letter in word, ""


def fact(rng: Random, lexicon: Lexicon) -> Item:
    """Draw a small piece of knowledge with a one-word answer."""
    quiz = rng.choice((_opposite, _after, _after))(rng, 1)
    return Item("fact", quiz.question, f"{quiz.right.capitalize()}.", fixed=True)


def kind(rng: Random, lexicon: Lexicon) -> Item:
    """Ask for the kind of a thing, for words of a single kind."""
    which = rng.choice(sorted(KINDS))
    word = _member(rng, which, [other for other in KINDS if other != which])
    answer = f"{article(which).capitalize()}."
    return Item("fact", f"What kind of thing is {word}?", answer, fixed=True)
