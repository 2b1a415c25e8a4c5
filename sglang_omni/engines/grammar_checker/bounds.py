"""A second grammar for an answer that bounds the length of numbers in its JSON.

A schema cannot limit the number of digits, and a small model may generate digits up to its token
limit. So an answer must match two grammars: its own, and one of the same form in which each JSON
document is any sequence of JSON tokens with numbers of bounded length.
"""

import re

# A 64-bit integer has up to 20 digits. A 64-bit float has 17 that count, and zeros before them.
MAX_DIGITS = 20
MAX_EXPONENT_DIGITS = 3
# Consecutive whitespace characters, if the grammar backend is configured to allow any.
MAX_WHITESPACE = 64

_WHITESPACE = rf"[ \t\r\n]{{0,{MAX_WHITESPACE}}}"
_NUMBER = (
    rf"-?(0|[1-9][0-9]{{0,{MAX_DIGITS - 1}}})(\.[0-9]{{1,{MAX_DIGITS}}})?"
    rf"([eE][+-]?[0-9]{{1,{MAX_EXPONENT_DIGITS}}})?"
)
# Two numbers must not be adjacent, since they would form one number of any length.
BOUNDED_JSON = rf"""
bounded_json: (other_json | NUMBER other_json)* NUMBER?
other_json: STRING | MARK
STRING: /"([^"\\\x00-\x1F]|\\["\\\/bfnrt]|\\u[0-9a-fA-F]{{4}})*"{_WHITESPACE}/
MARK: /(true|false|null|[\[\]{{}},:]){_WHITESPACE}/
NUMBER: /{_NUMBER}{_WHITESPACE}/
"""
_DOCUMENT = re.compile(r"^(\w+): %json \{.*\}$", re.MULTILINE)

BOUNDED_DOCUMENT = f"%llguidance {{}}\nstart: bounded_json\n{BOUNDED_JSON}"
"""The bounding grammar of an answer that is one JSON document."""


def build_bounded_grammar(lark: str) -> str:
    """Return the bounding grammar for the grammar `lark`.

    Its JSON documents must be separate rules (`name: %json {...}`).
    """
    return _DOCUMENT.sub(r"\1: bounded_json", lark) + BOUNDED_JSON
