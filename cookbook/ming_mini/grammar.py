"""Short spoken commands of a small grammar, for training and for tests with a recogniser.

The same tables make the sentences and the JSGF grammar that constrains the recogniser.
"""

from dataclasses import dataclass
from random import Random

from cookbook.ming_mini.numbers import number_words

ROOMS = ["kitchen", "bedroom", "bathroom", "garden", "garage", "hallway", "office", "basement"]
DEVICES = ["light", "lamp", "radio", "heater", "fan", "television", "computer", "camera"]
OPENINGS = ["door", "window", "curtain", "gate", "drawer", "box"]
COLOURS = ["red", "blue", "green", "yellow", "black", "white", "orange", "purple"]
SHAPES = ["circle", "square", "triangle", "star", "arrow", "cross", "diamond", "ring"]
PLACES = ("to the left", "to the right", "to the top", "to the bottom", "to the middle")
NAMES = ["anna", "peter", "maria", "david", "lucy", "thomas", "helen", "george"]
COUNTS = tuple(number_words(number) for number in range(1, 21))
UNITS = ("seconds", "minutes", "hours")


@dataclass(frozen=True)
class Command:
    """One form of command: slots in a row, each a tuple of alternatives; "" skips a slot."""

    slots: tuple[tuple[str, ...], ...]

    def draw(self, rng: Random) -> str:
        """Draw one command, in lower case, without punctuation."""
        return " ".join(filter(None, (rng.choice(slot) for slot in self.slots)))

    def rule(self) -> str:
        """Return the right-hand side of its JSGF rule."""
        return " ".join(_alternatives(slot) for slot in self.slots)


POLITE = ("", "please")
COMMANDS = (
    Command((POLITE, ("turn on", "turn off"), ("the",), tuple(ROOMS), tuple(DEVICES))),
    Command((POLITE, ("open", "close"), ("the",), tuple(ROOMS), tuple(OPENINGS))),
    Command((POLITE, ("move the",), tuple(COLOURS), tuple(SHAPES), PLACES)),
    Command((POLITE, ("set a timer for", "wait for"), COUNTS, UNITS)),
    Command((POLITE, ("call", "send a message to"), tuple(NAMES), ("", "now", "tomorrow"))),
    Command((("show me", "draw", "count"), COUNTS, tuple(COLOURS), ("boxes", "balls", "lines"))),
)


def command(rng: Random) -> str:
    """Draw one command of any form."""
    return rng.choice(COMMANDS).draw(rng)


def jsgf() -> str:
    """Return the grammar of every command, in the Java speech grammar format."""
    rules = [f"<form{number}> = {form.rule()};" for number, form in enumerate(COMMANDS)]
    forms = " | ".join(f"<form{number}>" for number in range(len(COMMANDS)))
    head = "#JSGF V1.0;\ngrammar commands;\n"
    return head + f"public <command> = {forms};\n" + "\n".join(rules) + "\n"


def _alternatives(slot: tuple[str, ...]) -> str:
    spoken = " | ".join(word for word in slot if word)
    return f"[ {spoken} ]" if "" in slot else f"( {spoken} )"
