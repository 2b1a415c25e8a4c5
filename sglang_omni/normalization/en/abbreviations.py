"""Abbreviations: titles, Latin ones, those of firms and of books, initials with full stops."""

import re

from sglang_omni.normalization.en.numbers import text_before
from sglang_omni.normalization.rule import FormStart, Match, Rule

# Before a name; written with a full stop, or without one before a capital.
TITLES = {
    "Dr": "doctor", "Mr": "mister", "Mrs": "missus", "Ms": "miss", "Prof": "professor",
    "Rev": "reverend", "Hon": "honorable", "Gen": "general", "Col": "colonel",
    "Sgt": "sergeant", "Capt": "captain", "Cpt": "captain", "Lt": "lieutenant", "Maj": "major",
    "Cpl": "corporal", "Cmdr": "commander", "Adm": "admiral", "Gov": "governor",
    "Sen": "senator", "Rep": "representative", "Pres": "president", "Supt": "superintendent",
    "Fr": "father", "Messrs": "messieurs", "Mme": "madame", "Mlle": "mademoiselle",
    "Atty": "attorney", "Insp": "inspector", "Det": "detective", "Pvt": "private",
    "Brig": "brigadier", "Sr": "senior", "Jr": "junior", "Esq": "esquire",
}  # fmt: skip
_BARE_TITLES = "Dr|Mr|Mrs|Ms|Prof|Sgt|Capt|Lt|Gov|Messrs"
# Words that a sentence may end with, so that their full stop may be its end.
WORDS = {
    "etc": "et cetera", "vs": "versus", "approx": "approximately", "dept": "department",
    "inc": "incorporated", "ltd": "limited", "corp": "corporation", "bros": "brothers",
    "assn": "association", "assoc": "associates", "mfg": "manufacturing", "intl": "international",
    "govt": "government", "univ": "university", "dist": "district", "misc": "miscellaneous",
    "est": "established", "tel": "telephone", "ext": "extension", "temp": "temperature",
    "avg": "average", "esp": "especially", "incl": "including", "excl": "excluding",
    "max": "maximum", "tbsp": "tablespoons", "tsp": "teaspoons", "qty": "quantity",
    "appt": "appointment", "asst": "assistant", "natl": "national", "attn": "attention",
    "ref": "reference", "alt": "alternative", "orig": "original", "resp": "respectively",
    "cont": "continued", "abbr": "abbreviation", "anon": "anonymous", "viz": "namely",
    "addr": "address", "bldg": "building", "mgr": "manager", "mgmt": "management",
    "prev": "previous",
    "pkg": "package", "req": "requirement", "sec": "section", "cf": "compare", "al": "al",
    "hrs": "hours", "min": "minimum", "mins": "minutes", "yrs": "years", "lbs": "pounds",
}  # fmt: skip
_BARE_WORDS = "vs|etc|dept|approx|govt|misc"
CAPITAL_WORDS = {"Co": "company", "Mt": "Mount", "Ft": "Fort", "Pt": "Point", "Wm": "William"}
_MOUNTAINS = (
    "Everest|Fuji|Rushmore|Rainier|Vernon|Sinai|Kilimanjaro|Etna|Olympus|Hood|Shasta|Whitney|Vesuvius|"
    "Kenya|Kosciuszko|Denali|McKinley|Washington|Elbrus|Ararat"
)
# Before a number.
COUNTED = {
    "No": "number", "Nos": "numbers", "Vol": "volume", "Vols": "volumes", "Fig": "figure",
    "Figs": "figures", "Eq": "equation", "Ch": "chapter", "Chap": "chapter", "Sec": "section",
    "Art": "article", "p": "page", "pp": "pages", "pg": "page", "pgs": "pages", "Ver": "version",
    "Para": "paragraph", "Ed": "edition", "Op": "opus", "Tab": "table", "App": "appendix",
    "Ep": "episode", "Bldg": "building", "Rm": "room", "Fl": "floor", "Lot": "lot", "Pt": "part",
}  # fmt: skip
LATIN = {
    "e.g": "for example", "eg": "for example", "i.e": "that is", "ie": "that is",
    "a.k.a": "also known as", "w.r.t": "with respect to", "c.f": "compare", "n.b": "note well",
    "q.v": "which see", "p.a": "per annum", "r.s.v.p": "RSVP", "a.s.a.p": "ASAP",
}  # fmt: skip


_NEXT = r"(?=[ \u00a0]?\(?(?:\d|#|(?:[IVXLC]{2,7}|[VX])(?![A-Za-z])))"
_TITLE = re.compile(
    rf"(?<![\w.'\u2019])(?:(?P<title>{'|'.join(TITLES)})\.(?![A-Za-z]\.)|"
    rf"(?P<bare>{_BARE_TITLES})(?=[ ][A-Z]))"
)
_WORD = re.compile(
    rf"(?<![\w.'\u2019-])(?:(?P<word>(?i:{'|'.join(WORDS)}))\.(?!\w)|(?P<bare>{_BARE_WORDS})(?![\w.'\u2019-]))"
)
_CAPITAL = re.compile(
    rf"(?<![\w.'\u2019])(?:(?P<word>{'|'.join(CAPITAL_WORDS)})\.(?!\w)|(?P<bare>Mt)(?= "
    rf"(?:{_MOUNTAINS})\b))"
)
_NUMBERED = re.compile(
    rf"(?<![\w.'\u2019])(?P<word>(?i:{'|'.join(COUNTED)}))\.{_NEXT}|(?<!\w)№[ ]?(?=\d)"
)
_PHRASE = re.compile(
    r"(?<![\w.])(?P<phrase>(?i:e\.g|i\.e|a\.k\.a|w\.r\.t|c\.f|n\.b|q\.v|p\.a|r\.s\.v\.p|a\.s\.a\.p)\.?"
    r"|eg(?=[.,:]\s)\.?|ie(?=[.,:]\s)\.?)(?![A-Za-z0-9])"
)
_SAINT = re.compile(r"(?<![\w'\u2019])St\.?(?=[ ][A-Z][a-z])(?<!\d St)(?<!\d St\.)")
_AFTER_NAME = re.compile(r"\b[A-Z][a-z]+ $")
_NEW_SENTENCE = re.compile(
    r"[ ](?:The|A|An|It|He|She|We|They|I|You|There|This|That|In|On|At|And|But|"
    r"His|Her|Its|My|Our|Their)\b"
)
_INITIALS = re.compile(r"(?<![\w.'\u2019])(?P<letters>(?:[A-Za-z]\.){2,8}[A-Za-z]?)(?![A-Za-z0-9])")
_DEGREE = re.compile(
    r"(?<![\w.])(?P<degree>Ph\.? ?D|M\.Sc|B\.Sc|M\.Ed|B\.Ed|Ed\.D|D\.Phil|M\.Phil|LL\.[BM]"
    r"|Psy\.D)\.?"
    r"(?![A-Za-z0-9])"
)
# May end a sentence before another one; other words and initials stand before a name.
_FINAL = frozenset({"etc", "inc", "ltd", "corp", "bros", "dept", "govt", "misc", "univ", "al"})
_STATES = frozenset({"US", "USA", "UK", "UN", "EU", "UAE", "USSR", "DC", "AM", "PM", "AD", "BC"})
_HALF_DAYS = frozenset({"am", "pm"})


def _stop(match: Match) -> str:
    """Return the full stop of a sentence that ends with an abbreviation."""
    text, end = match.string, match.end()
    if not match[0].endswith("."):
        return ""
    following = text[end : end + 3]
    is_end = not following.strip("\"'\u201d\u2019)") or following.startswith("\n")
    starts_sentence = following[:1].isspace() and following.lstrip()[:1].isupper()
    return "." if is_end or starts_sentence else ""


def _read_title(match: Match) -> str:
    return TITLES[match["title"] or match["bare"]]


def _read_word(match: Match) -> str:
    form = (match["word"] or match["bare"]).lower()
    return WORDS[form] + (_stop(match) if form in _FINAL or _ends_text(match) else "")


def _read_capital(match: Match) -> str:
    word = CAPITAL_WORDS[match["word"] or match["bare"]]
    return word + (_stop(match) if word == "company" and _ends_text(match) else "")


def _ends_text(match: Match) -> bool:
    return not match.string[match.end() : match.end() + 2].strip()


def _read_numbered(match: Match) -> str:
    word = match["word"]
    spoken = "number" if word is None else COUNTED.get(word.capitalize()) or COUNTED[word.lower()]
    following = match.string[match.end() : match.end() + 1]
    return spoken if following.isspace() else f"{spoken} "


def _read_phrase(match: Match) -> str:
    return LATIN[match["phrase"].lower().rstrip(".")]


def _read_initials(match: Match) -> str:
    """Read initials without their full stops: "U.S.A." is "USA"."""
    letters = match["letters"].replace(".", "")
    spoken = letters.upper() if letters.lower() in _HALF_DAYS or letters.isupper() else letters
    return spoken + (_stop(match) if spoken in _STATES or _ends_text(match) else "")


def _read_saint(match: Match) -> str:
    """Read St. Louis as "Saint Louis", and Main St. at the end of a sentence as "Street."."""
    is_street = _AFTER_NAME.search(text_before(match)) and _NEW_SENTENCE.match(
        match.string, match.end()
    )
    return "Street." if is_street else "Saint"


def _read_degree(match: Match) -> str:
    return re.sub(r"[. ]", "", match["degree"]) + _stop(match)


RULES = (
    Rule("abbreviation", _PHRASE, _read_phrase, FormStart.LETTER),
    Rule("abbreviation", _NUMBERED, _read_numbered, FormStart.LETTER | FormStart.SIGN),
    Rule("abbreviation", _DEGREE, _read_degree, FormStart.LETTER),
    Rule("title", _TITLE, _read_title, FormStart.LETTER),
    Rule("abbreviation", _WORD, _read_word, FormStart.LETTER),
    Rule("abbreviation", _CAPITAL, _read_capital, FormStart.LETTER),
    Rule("title", _SAINT, _read_saint, FormStart.LETTER),
    Rule("initials", _INITIALS, _read_initials, FormStart.LETTER),
)
