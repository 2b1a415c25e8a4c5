"""Roman numerals after a name or a noun that is counted: Henry VIII, Chapter IV."""

import re

from sglang_omni.normalization.en.numbers import spell_integer, spell_ordinal, text_before
from sglang_omni.normalization.rule import FormStart, Match, Rule

_NUMERAL = re.compile(
    r"(?<![\w.])(?=[IVXLCDM])(?P<numeral>M{0,3}(?:C[MD]|D?C{0,3})(?:X[CL]|L?X{0,3})(?:I[XV]|V?I{0,3}))"
    r"(?P<ending>th|st|nd|rd)?(?![A-Za-z0-9_&@+]|['\u2019](?!s\b)|\.[A-Za-z])"
)
_IN_BRACKETS = re.compile(r"(?<=\()(?P<numeral>(?:x?(?:i[xv]|v?i{0,3})))(?=\))")
_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}

_COUNTED = re.compile(
    r"(?<![A-Za-z])(?i:chapters?|ch\.|parts?|pt\.|sections?|acts?|scenes?|volumes?|vol\.|books?|articles?|types?|"
    r"phases?|stages?|class|levels?|grades?|wars?|bowl|titles?|appendix|tables?|figures?|fig\.|exhibits?|"
    r"schedules?|rounds?|episodes?|seasons?|fantasy|rocky|mark|mk\.?|apollo|vatican|quartet|symphony|"
    r"sonata|concerto|groups?|divisions?|unit|lesson|canto|psalm|amendment|annex|tier|step|quest|"
    r"numerals?|pentium|theft auto|gta|soul|souls|civilization|warcraft|diablo|category|corps"
    r"|legion|"
    r"opus|op\.|no\.|verse|page|hall|building|tower|saturn|gemini|soyuz|rama|crusade|olympiad|"
    r"wrestlemania|expo|godfather|terminator|part|and|to|or)[ \u00a0-]$"
)
_FIRST_NAMES = (
    "Henry|Charles|George|Louis|James|Edward|William|Richard|Elizabeth|John|Paul|Pius|Benedict|"
    "Francis|Philip|Ferdinand|Frederick|Friedrich|Wilhelm|Napoleon|Napol\u00e9on|Alexander|Nicholas|Peter|"
    "Catherine|Katherine|Mary|Victor|Emmanuel|Leo|Gregory|Innocent|Clement|Ramses|Ramesses|Xerxes|"
    "Darius|Ptolemy|Cleopatra|Mehmed|Murad|Selim|Suleiman|Ivan|Robert|Stephen|Margaret|Christian|"
    "Gustav|Gustavus|Adolphus|Oscar|Harald|Harold|Olaf|Olav|Haakon|Carlos|Juan|Felipe|Alfonso|Pedro|"
    "Umberto|Leopold|Albert|Rainier|Otto|Maximilian|Constantine|Justinian|Theodosius|Amenhotep|"
    "Thutmose|Urban|Boniface|Celestine|Sixtus|Julius|Adrian|Hadrian|Martin|Malcolm|Kenneth|David|"
    "Donald|Baldwin|Ludwig|Franz|Joseph|Josef|Karl|Carl|Isabella|Beatrix|Juliana|Wilhelmina|Anne|"
    "Matilda|Eric|Erik|Valdemar|Sigismund|Casimir|Vladislaus|Stanislaus|Mithridates|Antiochus|"
    "Seleucus|Artaxerxes|Cyrus|Cambyses|Tiberius|Michael|Leo|Basil|Andronikos|Edmund|Ethelred|"
    "Thomas|Sam|Samuel|Daniel|Robert|Andrew|Walter|Arthur|Hugh|Simon|Theodore|Ted|Jack|Ben|Davis|"
    "Max|Tom|Jim|Bob|Bill|Frank|Steven|Kevin|Brian|Mark Anthony|Sancho|Ramiro|Zog|Faisal|Abdullah|"
    "Hussein|Hassan|Mohammed|Muhammad|Menelik|Pope|King|Queen|Emperor|Tsar"
)
_MONARCH = re.compile(rf"(?<![A-Za-z])(?:{_FIRST_NAMES})[ \u00a0]$")
# "John Smith III": a first name and a family name.
_FULL_NAME = re.compile(
    r"(?:\b[A-Z][a-z]+ (?:[A-Z]\. )?|\b(?:Mr|Dr)\. )(?:Mc|Mac|O')?[A-Z][a-z]+,?[ \u00a0]$"
)
_CAPITAL_BEFORE = re.compile(r"(?:^|[^A-Za-z])[A-Z][A-Za-z]{2,}[ \u00a0]$")
_WORD_FOLLOWS = re.compile(r"[ ](?!(?:of|and|was|is|to|in|has|or|had|by|for|from|with)\b)[a-z]")
_CENTURY_FOLLOWS = re.compile(r"[ ](?:century|centuries|dynasty)\b")
# Letters rather than numerals, unless in a longer numeral: Part C, Appendix D, Model X.
_SINGLE = frozenset("IVX")


def parse_roman(numeral: str) -> int:
    """Return the value of a numeral in capitals: "XIV" is 14."""
    values = [_VALUES[letter] for letter in numeral]
    pairs = zip(values, [*values[1:], 0], strict=True)
    return sum(-value if value < following else value for value, following in pairs)


def _read(match: Match) -> str | None:
    """Read a numeral as an ordinal after a person, as a number after a counted noun."""
    numeral, before = match["numeral"], text_before(match)
    digits = str(parse_roman(numeral))
    if match["ending"] or _CENTURY_FOLLOWS.match(match.string, match.end()):
        return spell_ordinal(digits) if match["ending"] or len(numeral) > 1 else None
    if len(numeral) == 1 and not _is_single_numeral(match, before):
        return None
    if _MONARCH.search(before):
        return f"the {spell_ordinal(digits)}"
    if _COUNTED.search(before):
        return _read_counted(digits, numeral, before)
    if len(numeral) < 2 or parse_roman(numeral) > 39:
        return None
    if numeral in ("II", "III", "IV") and _FULL_NAME.search(before):
        return f"the {spell_ordinal(digits)}"
    return spell_integer(digits) if _CAPITAL_BEFORE.search(before) else None


def _read_counted(digits: str, numeral: str, before: str) -> str | None:
    """Read a numeral after a noun; after "and" or "to" only where another one stands before."""
    if re.search(r"(?:and|to|or|part|AND|TO|OR)[ \u00a0-]$", before) and not re.search(
        r"(?i:part)[ \u00a0-]$|\b[IVXL]+ (?:and|to|or) $", before
    ):
        return None
    return spell_integer(digits)


def _is_single_numeral(match: Match, before: str) -> bool:
    """Return whether a single letter is a numeral: "Part I", but not "the part I like"."""
    if match["numeral"] not in _SINGLE or _WORD_FOLLOWS.match(match.string, match.end()):
        return False
    noun = before.rstrip().rsplit(" ", 1)[-1]
    return noun[:1].isupper() and noun.lower() not in (
        "mark",
        "type",
        "class",
        "malcolm",
        "to",
        "or",
    )


def _read_in_brackets(match: Match) -> str | None:
    numeral = match["numeral"].upper()
    return spell_integer(str(parse_roman(numeral))) if len(numeral) > 1 else None


RULES = (
    Rule("roman", _NUMERAL, _read, FormStart.LETTER),
    Rule("roman", _IN_BRACKETS, _read_in_brackets, FormStart.LETTER),
)
