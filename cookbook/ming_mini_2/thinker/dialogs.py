"""Dialogs of several turns: recall of what was said, system messages, and answers in between."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from cookbook.ming_mini.lexicon import Lexicon
from cookbook.ming_mini.sentences import FRIENDS
from cookbook.ming_mini.thinker.chat import PLACES
from cookbook.ming_mini.thinker.dialogs import SYSTEMS
from cookbook.ming_mini.thinker.items import Check, Item
from cookbook.ming_mini.thinker.words import KINDS, THINGS
from cookbook.ming_mini_2.thinker.dialog import DialogItem, as_dialog, exchange, text_message

Maker = Callable[[Random, Lexicon], Item]
SYSTEM_SHARE, EARLIER_SHARE = 0.15, 0.2
"""Of the items, after a system message and after earlier exchanges."""
MADE_UP_SHARE = 0.3
"""Of names and places, made up of syllables, so that they are copied and not chosen."""
SYLLABLES = "ba be bo da de di fa fi ga go ka ko la li lo ma mi na no ra ri ro sa so ta ti va vo za"
SYSTEM_LINES = (
    *SYSTEMS,
    *("You are a friendly assistant.", "You are a helpful assistant. Be brief.", "Be polite."),
    *("You answer questions.", "Help the user.", "You are a voice assistant.", "Be concise."),
    "You are a helpful assistant that answers in English.",
)


@dataclass(frozen=True)
class Fact:
    """Something that a user says of themselves, the reply, and how to ask for it later."""

    said: tuple[str, ...]
    reply: str
    asked: tuple[str, ...]
    answer: str


FACTS = {
    "name": Fact(
        ("My name is {}.", "I am {}.", "Hi, I'm {}.", "Hello, my name is {}.", "Call me {}."),
        "Hello, {}! How can I help you?",
        ("What is my name?", "Who am I?", "Do you remember my name?", "What's my name?"),
        "Your name is {}.",
    ),
    "place": Fact(
        ("I live in {}.", "I am from {}.", "My home is in {}.", "I come from {}."),
        "{} is a nice place.",
        ("Where do I live?", "Where am I from?", "Where is my home?"),
        "You live in {}.",
    ),
    "colour": Fact(
        ("My favourite colour is {}.", "I like {} most of all colours.", "I love the colour {}."),
        "I see, {}.",
        ("What is my favourite colour?", "Which colour do I like?"),
        "Your favourite colour is {}.",
    ),
    "number": Fact(
        ("Remember the number {}.", "Keep the number {} in mind.", "My lucky number is {}."),
        "I will remember {}.",
        ("What was the number?", "Which number did I say?", "What number did I tell you?"),
        "The number is {}.",
    ),
    "pet": Fact(
        ("I have a dog called {}.", "My dog's name is {}.", "My dog is called {}."),
        "{} is a good name for a dog.",
        ("What is my dog's name?", "What is my dog called?", "How is my dog called?"),
        "Your dog is called {}.",
    ),
    "thing": Fact(
        ("I have bought a {}.", "Today I found a {}.", "There is a {} on my table."),
        "A {}, very good.",
        ("What did I tell you about?", "What thing did I mention?"),
        "You told me about a {}.",
    ),
}
UNKNOWN = {
    "What is my name?": "You have not told me your name.",
    "Who am I?": "You have not told me your name.",
    "Where do I live?": "You have not told me where you live.",
    "What is my favourite colour?": "You have not told me your favourite colour.",
    "How old am I?": "You have not told me how old you are.",
}


def made_up_name(rng: Random) -> str:
    """Make up a name of two or three syllables."""
    return "".join(rng.choices(SYLLABLES.split(), k=rng.randint(2, 3))).capitalize()


def person(rng: Random) -> str:
    """Draw a first name, sometimes one that is made up."""
    return made_up_name(rng) if rng.random() < MADE_UP_SHARE else rng.choice(FRIENDS).capitalize()


def place(rng: Random) -> str:
    """Draw a city or a country, sometimes one that is made up."""
    return made_up_name(rng) if rng.random() < MADE_UP_SHARE else rng.choice(PLACES)


def _value(kind: str, rng: Random) -> str:
    match kind:
        case "place":
            return place(rng)
        case "colour":
            return rng.choice(KINDS["colour"])
        case "number":
            return str(rng.randrange(2, 10 ** rng.randint(1, 4)))
        case "thing":
            return rng.choice([thing for thing in THINGS if thing[0] not in "aeiou"])
    return person(rng)


def recall(between: Sequence[Maker]) -> Maker:
    """Return a task: tell something, perhaps ask something of `between`, then ask for it back."""

    def draw(rng: Random, lexicon: Lexicon) -> DialogItem:
        kinds = rng.sample(sorted(FACTS), rng.choice((1, 1, 2)))
        values = {kind: _value(kind, rng) for kind in kinds}
        before = []
        for kind, value in values.items():
            fact = FACTS[kind]
            said, reply = rng.choice(fact.said).format(value), fact.reply.format(value)
            before += [text_message("user", said), text_message("assistant", reply)]
        for _ in range(rng.choice((0, 0, 1, 2))):
            before += exchange(rng.choice(between)(rng, lexicon))
        kind = rng.choice(kinds)
        answer = FACTS[kind].answer.format(values[kind])
        accept = (values[kind].lower(),)
        ask = rng.choice(FACTS[kind].asked)
        check: Check = "number" if kind == "number" else "contains"
        return DialogItem("recall", ask, answer, check, accept, before=tuple(before))

    return draw


def unknown(rng: Random, lexicon: Lexicon) -> Item:
    """Ask for something that the user has not said."""
    ask, answer = rng.choice(tuple(UNKNOWN.items()))
    return Item("recall", ask, answer, "contains", ("have not told",), fixed=True)


def system_name(rng: Random, lexicon: Lexicon) -> DialogItem:
    """Give the assistant a name in the system message, and ask for it."""
    name = made_up_name(rng)
    system = rng.choice(
        (
            f"Your name is {name}.",
            f"You are {name}, a helpful assistant.",
            f"You are {name}. Answer briefly.",
            f"You are called {name}.",
        )
    )
    ask = rng.choice(("Who are you?", "What is your name?", "What are you called?", "And you are?"))
    before = (text_message("system", system),)
    return DialogItem("system", ask, f"I am {name}.", "contains", (name.lower(),), before=before)


def system_rule(rng: Random, lexicon: Lexicon) -> DialogItem:
    """Give a rule for every answer in the system message, and a user's message that meets it."""
    word = rng.choice(THINGS)
    rule, answer = rng.choice(
        (
            (f"Answer every message with the word {word}.", word.capitalize()),
            (f'Always say "{word}" and nothing else.', word.capitalize()),
            ("Answer in capital letters.", "HELLO! HOW CAN I HELP YOU?"),
            ("You must always answer with yes.", "Yes."),
            ("You must always answer with no.", "No."),
        )
    )
    ask = rng.choice(("Hello", "Hi", "Hello!", "Hi there", "Good morning", "Hey"))
    before = (text_message("system", rule),)
    return DialogItem("system", ask, answer, before=before)


def with_context(item: Item, rng: Random, draw_earlier: Callable[[], Item]) -> Item:
    """Return an item, sometimes after a system message and exchanges from `draw_earlier`.

    The item's split is that of its content without the context, and must be known before.
    """
    before = []
    if rng.random() < SYSTEM_SHARE:
        before.append(text_message("system", rng.choice(SYSTEM_LINES)))
    if rng.random() < EARLIER_SHARE:
        for _ in range(rng.randint(1, 2)):
            before += exchange(draw_earlier())
    if not before or (isinstance(item, DialogItem) and item.before):
        return item
    return as_dialog(item, before=tuple(before))
