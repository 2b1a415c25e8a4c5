"""Plain-looking words within names and signs, such as the title in "Dr Smith"."""

from sglang_omni.normalization.en.abbreviations import (
    CAPITAL_WORDS,
    COUNTED,
    LATIN,
    TITLES,
    WORDS,
)
from sglang_omni.normalization.en.addresses import STATES, STREETS
from sglang_omni.normalization.en.versions import NAMES

_OTHERS = (
    "st", "n", "s", "e", "w", "ne", "nw", "se", "sw", "apt", "ste", "rm", "flr", "p", "po", "box",
    # Telephones, identifiers, and what is said of 911.
    "ext", "extension", "x", "isbn", "issn", "imei", "ssn", "iban", "call", "calls", "operator",
    "operators", "dispatch", "dispatcher", "emergency",
    # Roman numerals.
    "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "century", "centuries", "dynasty",
    # Versions, and short words with a slash.
    "alpha", "beta", "rc", "dev", "post", "pre", "preview", "nightly", "and", "or", "b", "c", "a",
)  # fmt: skip
_FORMS = (
    *TITLES, *WORDS, *CAPITAL_WORDS, *COUNTED, *LATIN, *STATES, *STREETS, *NAMES.split("|"),
    *_OTHERS,
)  # fmt: skip
NAME_WORDS = frozenset(part for form in _FORMS for part in form.lower().split("."))
