"""Answers in JSON: what a text says, under the keys that the user or the schema names."""

import json
from dataclasses import dataclass
from random import Random
from typing import Any

from cookbook.ming_mini.lexicon import Lexicon
from cookbook.ming_mini.sentences import DAYS
from cookbook.ming_mini.thinker.words import KINDS, THINGS
from cookbook.ming_mini_2.thinker.dialog import DialogItem
from cookbook.ming_mini_2.thinker.dialogs import person, place

NOUN_SHARE = 0.4
"""Of things, any noun of the dictionary, so that they are copied and not chosen."""
COMPACT = (",", ":")
"""Separators of a constrained answer, as the server's grammar has them."""


@dataclass(frozen=True)
class Record:
    """A sentence with places for values, and the keys of these values."""

    text: str
    keys: tuple[str, ...]


RECORDS = (
    Record("{name} is {age} years old.", ("name", "age")),
    Record("{name} lives in {city}.", ("name", "city")),
    Record("{name} is {age} years old and lives in {city}.", ("name", "age", "city")),
    Record("The {thing} is {colour} and costs {price} dollars.", ("thing", "colour", "price")),
    Record("{name} bought {count} {thing}s on {day}.", ("name", "count", "thing", "day")),
    Record("The meeting with {name} is on {day} in {city}.", ("name", "day", "city")),
    Record("A {colour} {thing} costs {price} dollars.", ("colour", "thing", "price")),
    Record("There are {count} {thing}s in {city}.", ("count", "thing", "city")),
)
ASKED = (
    "Extract the {keys} as JSON: {text}",
    "Give me the {keys} as JSON. {text}",
    "{text} Answer in JSON with {keys}.",
    "Return a JSON object with {keys}.\n{text}",
    "Extract the {keys}: {text}",
    "{text} Write this as JSON.",
    "Extract the data: {text}",
)


def _value(key: str, rng: Random, lexicon: Lexicon) -> str | int:
    match key:
        case "name":
            return person(rng)
        case "city":
            return place(rng)
        case "thing":
            return rng.choice(lexicon.nouns if rng.random() < NOUN_SHARE else THINGS)
        case "colour":
            return rng.choice(KINDS["colour"])
        case "day":
            return rng.choice(DAYS)
    return rng.randrange(2, 100)


def json_answer(rng: Random, lexicon: Lexicon) -> DialogItem:
    """Draw a sentence whose values are to be given as a JSON object."""
    record = rng.choice(RECORDS)
    values = {key: _value(key, rng, lexicon) for key in record.keys}
    text = record.text.format(**values)
    keys = list(record.keys)
    ask = rng.choice(ASKED)
    if "{keys}" in ask and rng.random() < 0.4:
        keys = rng.sample(keys, rng.randint(1, len(keys)))
    listed = keys[0] if len(keys) == 1 else f"{', '.join(keys[:-1])} and {keys[-1]}"
    answer = {key: values[key] for key in keys}
    return DialogItem(
        "json",
        ask.format(keys=listed, text=text),
        json.dumps(answer, ensure_ascii=False, separators=COMPACT),
        schema=_schema(answer),
    )


def _schema(answer: dict[str, str | int]) -> dict[str, Any]:
    """Return the JSON schema that a user would send for such an answer."""
    kinds = {
        key: "integer" if isinstance(value, int) else "string" for key, value in answer.items()
    }
    return {
        "type": "object",
        "properties": {key: {"type": kind} for key, kind in kinds.items()},
        "required": list(answer),
        "additionalProperties": False,
    }
