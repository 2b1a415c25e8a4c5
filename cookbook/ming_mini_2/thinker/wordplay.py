"""Small skills with words and numbers: order, halves and doubles, series, how much of a hundred."""

from random import Random

from cookbook.ming_mini.lexicon import Lexicon
from cookbook.ming_mini.thinker.items import Item
from cookbook.ming_mini.thinker.text_tasks import word
from cookbook.ming_mini.thinker.words import KINDS


def wordplay(rng: Random, lexicon: Lexicon) -> Item:
    """Draw one of the skills."""
    makers = (_in_order, _of_list, _half_or_double, _series, _part, _longest, _name_some, _square)
    return rng.choice(makers)(rng, lexicon)


def _in_order(rng: Random, lexicon: Lexicon) -> Item:
    if rng.random() < 0.5:
        found = sorted(rng.sample(range(1, rng.choice((20, 100))), rng.randint(3, 5)))
        shown = ", ".join(map(str, rng.sample(found, len(found))))
        answer = ", ".join(map(str, found))
        ask = rng.choice(("Sort these numbers: {}.", "Put these numbers in order: {}."))
    else:
        words = sorted({word(rng, lexicon) for _ in range(rng.randint(3, 4))})
        shown, answer = ", ".join(rng.sample(words, len(words))), ", ".join(words)
        ask = rng.choice(
            ("Sort these words by the alphabet: {}.", "Put these words in alphabetical order: {}.")
        )
    return Item("wordplay", ask.format(shown), f"{answer}.")


def _of_list(rng: Random, lexicon: Lexicon) -> Item:
    numbers = rng.sample(range(1, rng.choice((30, 100, 500))), rng.randint(3, 5))
    name, pick = rng.choice(
        (("largest", max), ("biggest", max), ("highest", max), ("smallest", min), ("lowest", min))
    )
    shown = ", ".join(map(str, numbers))
    ask = rng.choice(("Which of these numbers is the {}: {}?", "What is the {} of {}?"))
    return Item("wordplay", ask.format(name, shown), f"{pick(numbers)}.", "number")


def _half_or_double(rng: Random, lexicon: Lexicon) -> Item:
    number = rng.randint(1, 60)
    if rng.random() < 0.5:
        ask = rng.choice(("What is half of {}?", "What is one half of {}?"))
        return Item("wordplay", ask.format(2 * number), f"{number}.", "number")
    ask = rng.choice(("What is the double of {}?", "Double {}.", "What is twice {}?"))
    return Item("wordplay", ask.format(number), f"{2 * number}.", "number")


def _series(rng: Random, lexicon: Lexicon) -> Item:
    first, step, count = rng.randint(1, 20), rng.choice((1, 2, 3, 4, 5, 10)), rng.randint(3, 5)
    numbers = [first + step * place for place in range(count + 1)]
    shown = ", ".join(map(str, numbers[:-1]))
    ask = rng.choice(
        ("What comes next: {}?", "What is the next number: {}?", "Continue: {}, ...", "{}, ?")
    )
    return Item("wordplay", ask.format(shown), f"{numbers[-1]}.", "number")


def _part(rng: Random, lexicon: Lexicon) -> Item:
    share, whole = rng.choice((10, 20, 25, 50, 75)), 20 * rng.randint(1, 20)
    ask = rng.choice(("What is {}% of {}?", "What is {} percent of {}?", "How much is {}% of {}?"))
    return Item("wordplay", ask.format(share, whole), f"{whole * share // 100}.", "number")


def _square(rng: Random, lexicon: Lexicon) -> Item:
    number = rng.randint(2, 15)
    ask = rng.choice(("What is {} squared?", "What is the square of {}?"))
    return Item("wordplay", ask.format(number), f"{number * number}.", "number")


def _longest(rng: Random, lexicon: Lexicon) -> Item:
    words = [word(rng, lexicon) for _ in range(3)]
    lengths = [len(one) for one in words]
    name, pick = rng.choice((("longest", max), ("shortest", min)))
    if lengths.count(pick(lengths)) > 1:
        return _longest(rng, lexicon)
    answer = words[lengths.index(pick(lengths))]
    return Item("wordplay", f"Which word is the {name}: {', '.join(words)}?", f"{answer}.")


def _name_some(rng: Random, lexicon: Lexicon) -> Item:
    kind = rng.choice(sorted(KINDS))
    count, said = rng.choice(((2, "two"), (3, "three"), (4, "four"), (5, "five")))
    plural = {"piece of furniture": "pieces of furniture", "part of the body": "parts of the body"}
    name = plural.get(kind, "pieces of clothing" if "clothing" in kind else f"{kind}s")
    answer = ", ".join(KINDS[kind][:count])
    ask = rng.choice(("Name {} {}.", "Tell me {} {}.", "List {} {}.", "Give me {} {}."))
    shown = ask.format(rng.choice((said, str(count))), name)
    return Item("wordplay", shown, f"{answer[0].upper()}{answer[1:]}.", fixed=True)
