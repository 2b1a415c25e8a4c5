"""Signs and short forms that recognisers write, and one spelling of each word."""

from benchmarks.evaluation.readings.number_words import Words

SIGNS: dict[str, tuple[Words, ...]] = {
    "%": (("percent",),),
    "@": (("at",),),
    "&": (("and",),),
    "+": (("plus",),),
    "=": (("equals",), ("is",), ("equal",)),
    "/": (("slash",), ("over",), ("per",)),
    "°": (("degrees",), ("degree",)),
    "€": (("euros",), ("euro",)),
    "$": (("dollars",), ("dollar",)),
    "£": (("pounds",), ("pound",)),
    "#": (("number",), ("hash",)),
    "_": (("underscore",),),
    "*": (("asterisk",), ("star",), ("times",)),
}

_UNITS = {
    "kg": ("kilograms", "kilogram", "kilos"),
    "km": ("kilometers", "kilometer"),
    "m": ("meters", "meter"),
    "cm": ("centimeters", "centimeter"),
    "ml": ("milliliters", "milliliter"),
    "ft": ("feet", "foot"),
    "lb": ("pounds", "pound"),
    "lbs": ("pounds",),
    "gb": ("gigabytes", "gigabyte"),
    "w": ("watts", "watt"),
    "c": ("celsius",),
    "mr": ("mister",),
    "mrs": ("missus",),
    "dr": ("doctor", "drive"),
    "st": ("street", "saint"),
    "ave": ("avenue",),
    "rd": ("road",),
    "vs": ("versus",),
    "v": ("versus",),
}
# Other words that a written word may stand for.
WORD_FORMS: dict[str, tuple[Words, ...]] = {
    short: tuple((word,) for word in words) for short, words in _UNITS.items()
} | {
    "mph": (("miles", "per", "hour"),),
    "am": (("a", "m"),),
    "pm": (("p", "m"),),
    "http": (("h", "t", "t", "p"),),
}

_SPELLINGS = {
    "oh": "zero",
    "metre": "meter",
    "metres": "meters",
    "kilometres": "kilometers",
    "millilitres": "milliliters",
    "neighbours": "neighbors",
    "misses": "missus",
    "mrs": "missus",
    "negative": "minus",
    "okay": "ok",
}


def canonical(word: str) -> str:
    """Return the one spelling of a word that may be written in several ways.

    A zero is also called "oh", and numbers below zero are "minus" or "negative".
    """
    return _SPELLINGS.get(word, word)
