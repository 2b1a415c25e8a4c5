"""A second grammar beside that of an answer, so that no number in its JSON goes on for ever.

A schema cannot say how many digits a number has, and a small model may write digits up to its token
limit. So an answer is held to two grammars at once: its own, and one of the same form in which each
JSON document is any sequence of JSON's tokens, numbers of a bounded length among them.
"""

import re

# Before the point and behind it: more than a 64-bit float or integer is written with.
MAX_DIGITS = 30
MAX_EXPONENT_DIGITS = 3
# White space in a row, where the grammar back end is told to allow any.
MAX_BLANKS = 64

_BLANKS = rf"[ \t\r\n]{{0,{MAX_BLANKS}}}"
_NUMBER = (
    rf"-?(0|[1-9][0-9]{{0,{MAX_DIGITS - 1}}})(\.[0-9]{{1,{MAX_DIGITS}}})?"
    rf"([eE][+-]?[0-9]{{1,{MAX_EXPONENT_DIGITS}}})?"
)
# Two numbers never meet, since they would be one number of any length.
BOUNDED_JSON = rf"""
bounded_json: (other_json | NUMBER other_json)* NUMBER?
other_json: STRING | MARK
STRING: /"([^"\\\x00-\x1F]|\\["\\\/bfnrt]|\\u[0-9a-fA-F]{{4}})*"{_BLANKS}/
MARK: /(true|false|null|[\[\]{{}},:]){_BLANKS}/
NUMBER: /{_NUMBER}{_BLANKS}/
"""
_DOCUMENT = re.compile(r"^(\w+): %json \{.*\}$", re.MULTILINE)

BOUNDED_DOCUMENT = f"%llguidance {{}}\nstart: bounded_json\n{BOUNDED_JSON}"
"""The second grammar of an answer that is one JSON document."""


def bounded_form(lark: str) -> str:
    """Return the second grammar of an answer under the grammar `lark`, whose JSON documents are
    rules of their own (`name: %json {...}`)."""
    return _DOCUMENT.sub(r"\1: bounded_json", lark) + BOUNDED_JSON
