"""Sums and word problems of one and two steps, with worked answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from cookbook.ming_mini.lexicon import Lexicon
from cookbook.ming_mini.sentences import FRIENDS
from cookbook.ming_mini.thinker.items import Item
from cookbook.ming_mini.thinker.words import THINGS

SIGNS = {"+": "plus", "-": "minus", "*": "times", "/": "divided by"}
MAX_FACTOR = 12


@dataclass(frozen=True)
class Story:
    """A text with places for the numbers a, b and c, and the operations between them."""

    operations: str
    text: str


ONE_STEP = (
    Story("+", "{name} has {a} {things} and buys {b} more. How many {things} does {name} have?"),
    Story(
        "+", "{name} has {a} {things}. {other} has {b} {things}. How many do they have together?"
    ),
    Story("+", "There are {a} {things} in a box and {b} on a table. How many {things} are there?"),
    Story(
        "+", "{name} reads {a} pages on Monday and {b} pages on Tuesday. How many pages is that?"
    ),
    Story("+", "A {thing} costs {a} dollars and a lamp {b} dollars. What do both cost?"),
    Story("-", "{name} has {a} {things} and gives {b} to {other}. How many {things} are left?"),
    Story("-", "{name} had {a} {things} and lost {b} of them. How many does {name} still have?"),
    Story("-", "There were {a} people on a bus. {b} got off. How many are still on it?"),
    Story("-", "{name} has {a} dollars and pays {b} for a {thing}. How many dollars are left?"),
    Story("-", "{name} has {a} {things}, {other} has {b}. How many more does {name} have?"),
    Story("*", "There are {a} boxes with {b} {things} in each. How many {things} are there?"),
    Story("*", "{name} buys {a} {things} for {b} dollars each. How much does {name} pay?"),
    Story("*", "{name} walks {a} miles every day. How many miles is that in {b} days?"),
    Story("/", "{name} shares {a} {things} among {b} friends. How many does each one get?"),
    Story(
        "/", "{a} {things} are put into {b} boxes, the same number in each. How many are in a box?"
    ),
)
TWO_STEPS = (
    Story(
        "++", "{name} has {a} {things}, {other} gives {name} {b} and then {c}. How many are there?"
    ),
    Story("+-", "{name} has {a} {things}, buys {b} more and gives {c} away. How many are left?"),
    Story("+-", "A bus has {a} people. {b} get on and {c} get off. How many people are on it?"),
    Story("-+", "{name} had {a} {things}, lost {b} and found {c}. How many does {name} have now?"),
    Story("--", "{name} has {a} dollars, pays {b} for a {thing} and {c} for lunch. What is left?"),
    Story("--", "A shop has {a} {things} and sells {b} on Monday and {c} on Friday. What is left?"),
    Story(
        "*+",
        "{name} has {a} boxes with {b} {things} each, and {c} more. How many {things} is that?",
    ),
    Story(
        "*-",
        "{name} buys {a} bags with {b} {things} each and eats {c}. How many {things} are left?",
    ),
    Story("*+", "{a} {things} cost {b} dollars each and a bag {c} dollars. What is paid in all?"),
    Story(
        "/+", "{name} shares {a} {things} among {b} boxes and adds {c} to each. What is in a box?"
    ),
)


def sums(rng: Random, lexicon: Lexicon) -> Item:
    """Draw a bare sum of one or two steps."""
    operations = rng.choice(("+", "+", "-", "-", "*", "/", "++", "+-", "-+", "--"))
    numbers = operands(rng, operations)
    parts = [str(numbers[0])]
    for sign, number in zip(operations, numbers[1:], strict=True):
        parts += [sign, str(number)]
    text = " ".join(parts)
    ask = rng.choice(
        (f"What is {text}?", f"{text} = ?", f"Calculate {text}.", f"How much is {text}?")
    )
    return Item("arithmetic", ask, solution(operations, numbers), "number", about=text)


def word_problem(rng: Random, lexicon: Lexicon) -> Item:
    """Draw a short story with one or two steps, answered like GSM8K: steps, then the answer."""
    story = rng.choice(rng.choice((ONE_STEP, TWO_STEPS)))
    numbers = operands(rng, story.operations)
    text = tell(story, numbers, rng)
    task = "word_problem_1" if len(story.operations) == 1 else "word_problem_2"
    return Item(task, text, f"{solution(story.operations, numbers)}", "number")


def tell(story: Story, numbers: Sequence[int], rng: Random) -> str:
    """Fill names, things and numbers into a story."""
    one, other = rng.sample(FRIENDS, 2)
    thing = rng.choice(THINGS)
    values = dict(zip("abc", numbers, strict=False))
    return story.text.format(
        name=one.capitalize(), other=other.capitalize(), thing=thing, things=f"{thing}s", **values
    )


def operands(rng: Random, operations: str) -> list[int]:
    """Draw numbers for the operations from left to right; results are whole and not negative."""
    first, more = operations[0], operations[1:]
    numbers, result = _pair(rng, first)
    for sign in more:
        numbers.append(_next(rng, sign, result))
    return numbers


def _pair(rng: Random, sign: str) -> tuple[list[int], int]:
    top = rng.choice((10, 20, 100))
    small, large = sorted((rng.randint(2, top), rng.randint(2, top)))
    match sign:
        case "+":
            pair = rng.sample((small, large), 2)
            return pair, small + large
        case "-":
            large += 1
            return [large, small], large - small
        case "*":
            pair = [rng.randint(2, MAX_FACTOR), rng.randint(2, MAX_FACTOR)]
            return pair, pair[0] * pair[1]
        case _:
            divisor, result = rng.randint(2, MAX_FACTOR), rng.randint(2, MAX_FACTOR)
            return [divisor * result, divisor], result


def _next(rng: Random, sign: str, result: int) -> int:
    """Draw a third number; a subtraction leaves at least zero."""
    return rng.randint(2, rng.choice((10, 20, 60))) if sign == "+" else rng.randint(0, result)


def apply(sign: str, left: int, right: int) -> int:
    """Apply one operation. Raises `ValueError` for a division with a remainder."""
    if sign == "/" and left % right:
        raise ValueError(f"{left} / {right} is no whole number")
    return {"+": left + right, "-": left - right, "*": left * right}.get(
        sign, left // max(right, 1)
    )


def solution(operations: str, numbers: Sequence[int]) -> str:
    """Return every step as an equation, then the answer."""
    result, steps = numbers[0], []
    for sign, number in zip(operations, numbers[1:], strict=True):
        before, result = result, apply(sign, result, number)
        steps.append(f"{before} {sign} {number} = {result}.")
    return f"{' '.join(steps)} The answer is {result}."
