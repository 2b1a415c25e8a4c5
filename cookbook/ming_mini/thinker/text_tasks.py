"""Text tasks about the text itself: repeat, rephrase, spell, count and compare."""

from random import Random

from cookbook.ming_mini.lexicon import Lexicon
from cookbook.ming_mini.sentences import FRIENDS, draw_sentence
from cookbook.ming_mini.thinker.items import Item, split_of, with_reason
from cookbook.ming_mini.thinker.words import THINGS, VERBS

MAX_REPEATED = 16
ORDINALS = ("first", "second", "third", "fourth")


def name(rng: Random) -> str:
    """Draw a first name."""
    return rng.choice(FRIENDS).capitalize()


def word(rng: Random, lexicon: Lexicon) -> str:
    """Draw a word of 2 to 9 letters; frequent ones are likelier, and some are random letters."""
    if rng.random() < 0.1:
        return "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.randint(2, 7)))
    pool = rng.choice((lexicon.nouns, lexicon.nouns[:400], lexicon.verbs, lexicon.adjectives))
    found = rng.choice(pool)
    return found if 2 <= len(found) <= 9 else word(rng, lexicon)


def repeat(rng: Random, lexicon: Lexicon) -> Item:
    """Ask to repeat a sentence, some words or digits."""
    text = _to_repeat(rng, lexicon)
    ask = rng.choice(
        (
            f"Repeat: {text}",
            f"Say this again: {text}",
            f'Repeat after me: "{text}"',
            f"Please repeat the following.\n{text}",
            f"Say: {text}",
        )
    )
    return Item("repeat", ask, text)


def _to_repeat(rng: Random, lexicon: Lexicon) -> str:
    kind = rng.random()
    if kind < 0.25:
        return " ".join(word(rng, lexicon) for _ in range(rng.randint(1, 6)))
    if kind < 0.35:
        return " ".join(
            str(rng.randrange(10 ** rng.randint(1, 4))) for _ in range(rng.randint(1, 5))
        )
    text = draw_sentence(rng, lexicon)
    return text if len(text.split()) <= MAX_REPEATED else _to_repeat(rng, lexicon)


def rephrase(rng: Random, lexicon: Lexicon) -> Item:
    """Ask to rephrase a sentence by a rule of grammar."""
    verb, who, thing = rng.choice(VERBS), name(rng), rng.choice(THINGS)
    adjective = rng.choice(lexicon.adjectives[:200])
    article = rng.choice(("the", "the", "this"))
    what = f"{article} {adjective} {thing}" if rng.random() < 0.5 else f"{article} {thing}"
    plain = f"{who} {verb.third} {what}."
    forms = (
        ("Put this into the past", plain, f"{who} {verb.past} {what}."),
        ("Make this a question", plain, f"Does {who} {verb.base} {what}?"),
        ("Say the opposite", plain, f"{who} does not {verb.base} {what}."),
        (
            "Put this into the passive",
            f"{who} {verb.past} {what}.",
            _passive(what, verb.participle, who),
        ),
        ("Put this into the future", plain, f"{who} will {verb.base} {what}."),
    )
    ask, given, answer = rng.choice(forms)
    return Item("rephrase", f"{ask}: {given}", answer)


def _passive(what: str, participle: str, who: str) -> str:
    return f"{what.capitalize()} was {participle} by {who}."


def spell(rng: Random, lexicon: Lexicon) -> Item:
    """Ask to spell a word, or about its letters."""
    text = word(rng, lexicon)
    place = rng.randrange(min(len(text), len(ORDINALS)))
    shown = _show(text, rng)
    questions = (
        (rng.choice((f"Spell {shown}.", f"How do you spell {shown}?")), "-".join(text.upper())),
        (f"What is the {ORDINALS[place]} letter of {shown}?", text[place].upper()),
        (f"What is the last letter of {shown}?", text[-1].upper()),
        (f"Write {shown} backwards.", text[::-1]),
        (f"Write {shown} in capital letters.", text.upper()),
    )
    ask, answer = rng.choices(questions, (4, 1, 1, 1, 1))[0]
    return Item("spell", ask, answer, about=_letters_of(text))


def _letters_of(text: str) -> str:
    """Return the subject of a question about the letters of a word."""
    return f"letters of {text}"


def _show(text: str, rng: Random) -> str:
    """Return the word as it stands in a question about its letters.

    Held-out words are in quotes, and so letter by letter: a frequent word that stands alone is one
    token, and a token that was never spelled cannot be spelled.
    """
    quoted = f'"{text}"'
    if split_of(_letters_of(text)) == "held_out":
        return quoted
    return rng.choice((text, quoted, f"the word {quoted}", f"the word {text}"))


def count(rng: Random, lexicon: Lexicon) -> Item:
    """Ask to count letters, words or numbers."""
    maker = rng.choice((_count_range, _count_words, _count_letters, _count_same, _count_next))
    return maker(rng, lexicon)


def _count_range(rng: Random, lexicon: Lexicon) -> Item:
    low, length = rng.randrange(0, 90), rng.randint(3, 9)
    numbers = [str(number) for number in range(low, low + length)]
    if rng.random() < 0.4:
        numbers.reverse()
    return Item("count", f"Count from {numbers[0]} to {numbers[-1]}.", ", ".join(numbers) + ".")


def _count_words(rng: Random, lexicon: Lexicon) -> Item:
    words = [word(rng, lexicon) for _ in range(rng.randint(1, 7))]
    return Item("count", f"How many words are here: {' '.join(words)}", f"{len(words)}.", "number")


def _count_letters(rng: Random, lexicon: Lexicon) -> Item:
    text = word(rng, lexicon)
    # Spelling first makes counting easy.
    answer = f"{'-'.join(text.upper())}: {len(text)}."
    ask = f"How many letters are in {_show(text, rng)}?"
    return Item("count", ask, answer, "number", about=_letters_of(text))


def _count_same(rng: Random, lexicon: Lexicon) -> Item:
    chosen = rng.sample(THINGS, 3)
    row = [rng.choice(chosen) for _ in range(rng.randint(3, 8))]
    times = row.count(chosen[0])
    ask = f"How often does {chosen[0]} occur here: {' '.join(row)}"
    return Item("count", ask, f"{times}.", "number")


def _count_next(rng: Random, lexicon: Lexicon) -> Item:
    number, step = rng.randrange(1, 200), rng.choice((-1, 1))
    side = "after" if step > 0 else "before"
    ask = f"What number comes {side} {number}?"
    return Item("count", ask, f"{number + step}.", "number", about=f"{side} {number}")


def compare(rng: Random, lexicon: Lexicon, explain: bool = False) -> Item:
    """Ask which is more, less, or first.

    With `explain`, an answer that depends on two things, the order of the numbers and the word that
    asks, first says the one: "3 is less than 8, so it is Linda." The short answer is
    right, too.
    """
    maker = rng.choice((_compare_two, _compare_order, _compare_people, _compare_yes))
    return maker(rng, explain)


def explained_comparison(rng: Random, lexicon: Lexicon) -> Item:
    """Ask `compare` for an answer that gives its reason."""
    return compare(rng, lexicon, explain=True)


def two_numbers(rng: Random) -> tuple[int, int]:
    """Draw two different numbers, often close to each other."""
    top = rng.choice((10, 20, 100, 1000))
    one = rng.randrange(top)
    other = rng.randrange(top) if rng.random() < 0.6 else one + rng.choice((-10, -1, 1, 2, 9))
    return (one, other) if one != other and other >= 0 else two_numbers(rng)


def pair(one: int, other: int) -> str:
    """Return the subject of a comparison of two numbers."""
    return f"compare {min(one, other)} {max(one, other)}"


def _relation(one: int, other: int) -> str:
    return f"{one} is {'more' if one > other else 'less'} than {other}"


def _compare_two(rng: Random, explain: bool) -> Item:
    one, other = two_numbers(rng)
    ask, choose = rng.choice((("larger", max), ("smaller", min), ("greater", max), ("less", min)))
    question = f"Which is {ask}, {one} or {other}?"
    return Item("compare", question, f"{choose(one, other)}.", "number", about=pair(one, other))


def _compare_order(rng: Random, explain: bool) -> Item:
    numbers = rng.sample(range(rng.choice((10, 100))), rng.randint(3, 5))
    down = rng.random() < 0.3
    ask = "from large to small" if down else "from small to large"
    answer = ", ".join(map(str, sorted(numbers, reverse=down))) + "."
    return Item("compare", f"Order these {ask}: {', '.join(map(str, numbers))}", answer)


def _compare_people(rng: Random, explain: bool) -> Item:
    one, other = two_numbers(rng)
    first, second = rng.sample(FRIENDS, 2)
    first, second, thing = first.capitalize(), second.capitalize(), rng.choice(THINGS)
    more = rng.random() < 0.5
    winner = first if (one > other) == more else second
    asked = "more" if more else "fewer"
    ask = f"{first} has {one} {thing}s and {second} has {other}. Who has {asked}?"
    item = Item("compare", ask, f"{winner}.")
    return with_reason(item, f"{_relation(one, other)}, so it is {winner}.", explain)


def _compare_yes(rng: Random, explain: bool) -> Item:
    one, other = two_numbers(rng)
    more = rng.random() < 0.5
    ask = f"Is {one} {'more' if more else 'less'} than {other}?"
    answer = "Yes." if (one > other) == more else "No."
    item = Item("compare", ask, answer, about=pair(one, other))
    return with_reason(item, f"{_relation(one, other)}, so {answer.lower()}", explain)
