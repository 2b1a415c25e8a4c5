"""Links, mail addresses, paths and the like in English."""

from sglang_omni.normalization.en.numbers import spell_digits, spell_integer, spell_year
from sglang_omni.normalization.links import LinkWords, build_rules


def spell_link_number(digits: str) -> str:
    """Read digits within a link: 42 is "forty-two", 8080 "eighty eighty", 0123 digit by digit."""
    if digits.startswith("0") or len(digits) not in (2, 4):
        return spell_digits(digits)
    return spell_year(digits) if len(digits) == 4 else spell_integer(digits)


WORDS = LinkWords(
    signs={
        ".": "dot", "/": "slash", ":": "colon", "-": "dash", "_": "underscore", "@": "at",
        "?": "question mark", "=": "equals", "&": "ampersand", "#": "hashtag", "%": "percent",
        "+": "plus", "~": "tilde", "\\": "backslash", ",": "comma", ";": "semicolon",
        "!": "exclamation mark", "*": "star", "$": "dollar",
    },
    number=spell_link_number,
    octet=spell_digits,
)  # fmt: skip

RULES = build_rules(WORDS)
