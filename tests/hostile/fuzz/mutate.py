"""Mutations of bytes and of JSON that break parsers more often than noise does."""

import copy
import random
import struct
from typing import Any

NUMBERS = (
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0xFFFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    2**63,
    2**64 - 1,
)
FORMS = ("B", "<H", ">H", "<I", ">I", "<Q", ">Q")
ODD_TEXTS = (
    "",
    " ",
    "\x00",
    "\ufeff",
    "\u2028",
    "\U0001f600",
    "../..",
    "a" * 300,
    "%00",
    "\r\nX: y",
)
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 2**31, 2**63, -(2**63) - 1, 10**40, 1e308, -1e-308, 0.1),
    *ODD_TEXTS,
    *([], {}, [[]], [{}], {"": ""}, {"type": "object"}, ["a"] * 50),
)


def mutate_bytes(source: random.Random, data: bytes, most: int = 4) -> bytes:
    """Return `data` after up to `most` changes."""
    for _ in range(source.randint(1, most)):
        data = _change(source, data)
    return data


def _change(source: random.Random, data: bytes) -> bytes:
    place = source.randint(0, len(data))
    length = source.choice((1, 2, 4, 8, source.randint(1, 64)))
    match source.randrange(7):
        case 0 if data:
            place %= len(data)
            return (
                data[:place] + bytes([data[place] ^ 1 << source.randrange(8)]) + data[place + 1 :]
            )
        case 1:
            number = _packed(source)
            return data[:place] + number + data[place + len(number) :]
        case 2:
            return data[:place] + data[place + length :]
        case 3:
            return data[:place] + source.randbytes(length) + data[place:]
        case 4:
            piece = data[place : place + length]
            return data[:place] + piece * source.choice((2, 3, 50)) + data[place + length :]
        case 5:
            return data[:place]
        case _:
            other = source.randint(0, len(data))
            return data[:place] + data[other : other + length] + data[place:]


def _packed(source: random.Random) -> bytes:
    form = source.choice(FORMS)
    return struct.pack(form, source.choice(NUMBERS) & (256 ** struct.calcsize(form) - 1))


def mutate_json(source: random.Random, value: Any, most: int = 3) -> Any:
    """Return a copy of `value` with up to `most` places changed."""
    value = copy.deepcopy(value)
    for _ in range(source.randint(1, most)):
        places = list(_places(value))
        if not places:
            return source.choice(ODD_VALUES)
        holder, key = source.choice(places)
        _change_place(source, holder, key, places)
    return value


def _change_place(source: random.Random, holder: Any, key: Any, places: list[Any]) -> None:
    match source.randrange(5):
        case 0:
            del holder[key]
        case 1:
            other, name = source.choice(places)
            if name in other if isinstance(other, dict) else name < len(other):
                holder[key] = copy.deepcopy(other[name])
        case 2 if isinstance(holder, dict):
            holder[source.choice(ODD_TEXTS)] = holder.pop(key)
        case 3:
            holder[key] = [holder[key]] if source.random() < 0.5 else {"a": holder[key]}
        case _:
            holder[key] = copy.deepcopy(source.choice(ODD_VALUES))


def _places(value: Any) -> Any:
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inner in list(items):
        yield value, key
        yield from _places(inner)
