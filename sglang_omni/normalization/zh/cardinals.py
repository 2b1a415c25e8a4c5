"""Numbers that no other rule reads."""

from sglang_omni.normalization.rule import FormStart, Match, Rule
from sglang_omni.normalization.zh.classifiers import AFTER_QUANTITY, CLASSIFIERS, COUNTED_WORDS
from sglang_omni.normalization.zh.numbers import spell_cardinal, spell_count, spell_digits
from sglang_omni.normalization.zh.patterns import MINUS, NUMBER, SIGNED, form, one_of

COUNTED = f"(?:[{CLASSIFIERS}]|{one_of(COUNTED_WORDS)})"

_COUNT = form(rf"{SIGNED}(?!\s?分之)(?=\s?{COUNTED})")
# 1984 without 年 is a year where nothing is counted: 2022世界杯, 毕业于1984.
_YEAR = form(
    rf"(?<![\d.,$¥€£第])(?:19\d\d|20[0-3]\d)(?![\w.,%‰℃°+~-]|\s?(?:{COUNTED}|{one_of(AFTER_QUANTITY)}))"
)
# 2025届 and 2024款 are named by a year.
_YEAR_OF = form(r"(?<![\d.,第])(?:19|20)\d\d(?=[届级款版秋春夏冬](?!台))")
_PRICE = form(r".{0,60}(?:价|价格|售价|费|费用|花了?|共|约|达|近|超过|不到|总|合计)[为是：: ]?\Z")
_LEADING_ZERO = form(r"0\d++(?!\.?\d)")
# A number that long is a code, unless it is round.
_LONG = form(r"\d{13,}+(?<!0000)(?!\.?\d)")
_NO_INTEGER = form(r"(?<![\w.])\.\d++(?!\.)")
_NUMBER = form(NUMBER)
_NEGATIVE = form(rf"{MINUS}{NUMBER}")


def _read_count(match: Match) -> str | None:
    if match[0][0] == "0" and match[0][1:2].isdigit():
        return None
    # 第2个 is 第二个: an ordinal is no quantity.
    is_ordinal = match.string[max(0, match.start() - 1) : match.start()] == "第"
    return spell_cardinal(match[0]) if is_ordinal else spell_count(match[0])


def _read_year(match: Match) -> str | None:
    before = match.string[max(0, match.start() - 12) : match.start()]
    is_round = match[0] == "2000" and not before.endswith(tuple("于从自在到至"))
    return None if is_round or _PRICE.match(before) else spell_digits(match[0])


def _read_digits(match: Match) -> str:
    return spell_digits(match[0])


def _read_number(match: Match) -> str:
    return spell_cardinal(match[0])


RULES = (
    Rule("year", _YEAR_OF, _read_digits, FormStart.DIGIT),
    Rule("cardinal", _COUNT, _read_count, FormStart.DIGIT | FormStart.SIGN),
    Rule("year", _YEAR, _read_year, FormStart.DIGIT),
    Rule("digits", _LEADING_ZERO, _read_digits, FormStart.DIGIT),
    Rule("digits", _LONG, _read_digits, FormStart.DIGIT),
    Rule("cardinal", _NO_INTEGER, lambda match: spell_cardinal(f"0{match[0]}"), FormStart.SIGN),
    Rule("cardinal", _NUMBER, _read_number, FormStart.DIGIT),
    Rule("cardinal", _NEGATIVE, _read_number, FormStart.SIGN),
)
