"""Street addresses: house numbers, street types, states, directions and postal codes."""

import re

from sglang_omni.normalization.en.numbers import (
    spell_digits,
    spell_integer,
    spell_pairs,
    text_before,
)
from sglang_omni.normalization.rule import FormStart, Match, Rule

STREETS = {
    "St": "Street", "Ave": "Avenue", "Av": "Avenue", "Blvd": "Boulevard", "Rd": "Road",
    "Dr": "Drive", "Ln": "Lane", "Ct": "Court", "Pl": "Place", "Sq": "Square", "Hwy": "Highway",
    "Pkwy": "Parkway", "Pky": "Parkway", "Expy": "Expressway", "Fwy": "Freeway", "Ter": "Terrace",
    "Terr": "Terrace", "Cir": "Circle", "Aly": "Alley", "Cres": "Crescent", "Trl": "Trail",
    "Tpke": "Turnpike", "Rte": "Route", "Plz": "Plaza", "Hts": "Heights", "Xing": "Crossing",
}  # fmt: skip
_FULL_STREETS = (
    "Street|Avenue|Boulevard|Road|Drive|Lane|Court|Place|Square|Highway|Parkway|Way|Terrace|Circle|"
    "Broadway|Crescent|Trail|Plaza|Alley|Loop|Row"
)
STATES = {
    "AL": "Alabama", "AK": "Alaska", "AZ": "Arizona", "AR": "Arkansas", "CA": "California",
    "CO": "Colorado", "CT": "Connecticut", "DE": "Delaware", "DC": "D C", "FL": "Florida",
    "GA": "Georgia", "HI": "Hawaii", "ID": "Idaho", "IL": "Illinois", "IN": "Indiana",
    "IA": "Iowa", "KS": "Kansas", "KY": "Kentucky", "LA": "Louisiana", "ME": "Maine",
    "MD": "Maryland", "MA": "Massachusetts", "MI": "Michigan", "MN": "Minnesota",
    "MS": "Mississippi", "MO": "Missouri", "MT": "Montana", "NE": "Nebraska", "NV": "Nevada",
    "NH": "New Hampshire", "NJ": "New Jersey", "NM": "New Mexico", "NY": "New York",
    "NC": "North Carolina", "ND": "North Dakota", "OH": "Ohio", "OK": "Oklahoma", "OR": "Oregon",
    "PA": "Pennsylvania", "PR": "Puerto Rico", "RI": "Rhode Island", "SC": "South Carolina",
    "SD": "South Dakota", "TN": "Tennessee", "TX": "Texas", "UT": "Utah", "VT": "Vermont",
    "VA": "Virginia", "WA": "Washington", "WV": "West Virginia", "WI": "Wisconsin", "WY": "Wyoming",
}  # fmt: skip
_DIRECTIONS = {
    "N": "North", "S": "South", "E": "East", "W": "West", "NE": "Northeast", "NW": "Northwest",
    "SE": "Southeast", "SW": "Southwest",
}  # fmt: skip
_PARTS = {
    "apt": "apartment", "ste": "suite", "bldg": "building", "rm": "room", "flr": "floor",
    "p.o": "P O",
}  # fmt: skip

_TYPES = "|".join(STREETS)
_DIRECTION = r"[NSEW]{1,2}\.?"
_NAME = r"(?:[A-Z][A-Za-z'\u2019-]{1,20}|\d{1,3}(?:st|nd|rd|th)|[A-Z]\.?)"
_STREET = (
    rf"(?:{_DIRECTION} )?(?:{_NAME} ){{1,3}}"
    rf"(?:(?:{_TYPES}|{_TYPES.lower()})\.?(?![A-Za-z])|(?:{_FULL_STREETS})(?![A-Za-z]))"
)
_HOUSE = re.compile(
    rf"(?<![\w.,$€£#/-])(?P<number>\d{{1,5}})(?P<letter>[A-Za-z]?)(?= (?:{_STREET}|Broadway\b))"
)
_ORDINAL = r"\d(?:st|nd|rd|th)"
_STREET_BEFORE = re.compile(rf"(?:\b[A-Z][A-Za-z'\u2019-]+|{_ORDINAL}|\b[A-Z]{{1,2}}\.?)[ ]$")
_NUMBER_BEFORE = re.compile(r"(?<![\w.,$])\d{1,5}[A-Za-z]? (?:[\w.'\u2019-]{1,20} ){1,4}$")
_TYPE = re.compile(
    rf"(?<![\w'\u2019.])(?P<type>(?:{_TYPES})|(?:{_TYPES.lower()}))(?P<dot>\.?)(?![\w'\u2019])"
)
_UNAMBIGUOUS = frozenset({"Ave", "Blvd", "Rd", "Hwy", "Pkwy", "Ln", "Tpke", "Expy", "Fwy"})
_DIRECTION_IN = re.compile(
    rf"(?<=\d )(?P<side>[NSEW]{{1,2}})\.?(?= (?:{_NAME} ){{0,2}}(?:{_NAME})(?![\w]))"
)
_STATE = re.compile(
    rf"(?<![\w.])(?P<state>{'|'.join(STATES)})(?P<zip>,? \d{{5}}(?:-\d{{4}})?(?![\w]))?(?!"
    rf"[\w@/'\u2019-])"
)
_CITY_BEFORE = re.compile(r"[A-Z][a-z.'\u2019-]+(?P<comma>,?)[ ]$")
# English words, or other abbreviations: read as states only before a postal code.
_WORD_STATES = frozenset(
    {"IN", "OR", "ME", "HI", "OK", "OH", "LA", "MA", "PA", "ID", "CO", "DE", "PR"}
)
_ENDS = re.compile(r"[.,;:!?)]|\s*\Z")
_APARTMENT = re.compile(
    r"(?<![\w.])(?:(?P<part>(?i:apt|ste|bldg|rm|flr))\.?(?= [#\dA-Z])|"
    r"(?P<box>P\.? ?O\.?)(?= (?i:box)\b))"
)


def spell_house_number(digits: str) -> str:
    """Read a house number in pairs: 1428 is "fourteen twenty-eight", 708 "seven oh eight"."""
    if len(digits) < 3 or digits.endswith("000") or digits.startswith("0"):
        return spell_integer(digits)
    if len(digits) == 5:
        rest = digits[2:]
        tail = spell_digits(rest) if rest.startswith("0") else spell_pairs(rest)
        return f"{spell_integer(digits[:2])} {tail}"
    return spell_pairs(digits)


def _read_house(match: Match) -> str:
    spoken = spell_house_number(match["number"])
    return f"{spoken} {match['letter']}" if match["letter"] else spoken


def _read_type(match: Match) -> str | None:
    """Read the type of a street after its name; "St." before a name is a saint."""
    name, before = match["type"], text_before(match)
    has_number = _NUMBER_BEFORE.search(before)
    if not _STREET_BEFORE.search(before) or (name.islower() and not has_number):
        return None
    following = match.string[match.end() : match.end() + 3]
    is_name_next = following[:1] == " " and following[1:2].isupper()
    title = name.capitalize()
    if title in ("St", "Dr") and is_name_next and not has_number:
        return None
    if (
        title not in _UNAMBIGUOUS
        and not has_number
        and not (title in ("St", "Dr") and match["dot"])
    ):
        return None
    is_end = match["dot"] and (not following.strip("\"'") or is_name_next or following[0] == "\n")
    return STREETS[title] + ("." if is_end else "")


def _read_direction(match: Match) -> str | None:
    return _DIRECTIONS.get(match["side"])


def _read_state(match: Match) -> str | None:
    city, state = _CITY_BEFORE.search(text_before(match)), match["state"]
    if city is None:
        return None
    if match["zip"]:
        separator = ", " if match["zip"].startswith(",") else " "
        code = match["zip"].strip(", ").split("-")
        return f"{STATES[state]}{separator}{', '.join(map(spell_digits, code))}"
    is_certain = state not in _WORD_STATES or _ENDS.match(match.string, match.end())
    return STATES[state] if city["comma"] and is_certain else None


def _read_part(match: Match) -> str:
    return _PARTS[match["part"].lower()] if match["part"] else "P O"


RULES = (
    Rule("address", _HOUSE, _read_house, FormStart.DIGIT),
    Rule("address", _DIRECTION_IN, _read_direction, FormStart.LETTER),
    Rule("address", _STATE, _read_state, FormStart.LETTER),
    Rule("address", _APARTMENT, _read_part, FormStart.LETTER),
    Rule("address", _TYPE, _read_type, FormStart.LETTER),
)
