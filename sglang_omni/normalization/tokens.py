"""Where written forms may start: the tokens of a text."""

import re

from sglang_omni.normalization.rule import FormStart

HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"

# A run of letters with its combining accents, a run of ASCII digits, one Han character, a run of
# white space, or one sign.
TOKEN = re.compile(
    rf"(?P<HAN>[{HAN}])|(?P<DIGIT>[0-9]+)|(?P<LETTER>(?:[^\W\d_{HAN}][\u0300-\u036f]*)+)"
    r"|(?P<SIGN>\s+|.)",
    re.DOTALL,
)


def token_at(text: str, position: int) -> tuple[int, FormStart]:
    """Return the end and the kind of the token that starts at a position within the text."""
    match = TOKEN.match(text, position)
    assert match is not None
    assert match.lastgroup is not None
    return match.end(), FormStart[match.lastgroup]
