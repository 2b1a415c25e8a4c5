"""Letters and digits together: HDR10, 5G, A380, G1234次, B2B, COVID-19, 歼-20."""

from sglang_omni.normalization.rule import FormStart, Match, Rule, drop, replace_with
from sglang_omni.normalization.zh.cardinals import COUNTED
from sglang_omni.normalization.zh.numbers import spell_cardinal, spell_digits
from sglang_omni.normalization.zh.patterns import form, text_before

# Series of Chinese names that are followed by a hyphen and a number.
_SERIES = (
    "歼", "轰", "运", "直", "苏", "米格", "东风", "长征", "神舟", "天宫", "嫦娥",
    "红旗", "北斗", "鹰击", "玉兔", "风云", "快舟", "问天", "巨浪", "翼龙", "枭龙",
    "彩虹", "教", "空警", "图",
)  # fmt: skip
_AFTER_SERIES = form(rf"(?:{'|'.join(f'(?<={name})' for name in _SERIES)})[-\uff0d](?=\d)")
_ZONE = form(r"(?<=UTC|GMT)[-\u2212](?=\d)")
_HYPHEN = form(
    r"(?:(?<=[A-Za-z])[-\u2013](?=\d)|(?<=[A-Za-z]\d)[-\u2013](?=\d{3})|(?<=[A-Za-z]\d\.\d)[-\u2013](?=\d)|(?<=\d)[-\u2013](?=[A-Za-z]))"
)
_TO = form(
    r"(?<![\w])(?P<first>[BCOPGDFMS])2(?P<last>[BCOPGDFMS])(?:2(?P<third>[BCOPG]))?(?![A-Za-z0-9])"
)
# RTX 4090, 波音747: a number of three or four digits after a name, where nothing is counted.
_MODEL = form(
    rf"(?:(?<=[A-Za-z] )|(?<=波音)|(?<=空客)|(?<=标致)|(?<=麦道))\d{{3,4}}(?![\w.,%]|\s?{COUNTED})"
)
_MORE_DIGITS = form(r"-\d{3,12}(?![\w.,%])")
_SERIAL_BEFORE = form(r"(?:[A-Za-z]-?|波音)\d{1,5}\Z")
# The height of a picture: 1080P.
_PICTURE = form(r"(?<![\w.])\d{3,4}(?=[Pp](?![A-Za-z0-9]))")
_DIGITS = form(
    r"(?:(?<!\d[xX])(?<=[A-Za-z])|(?<=[A-Za-z][-\u2013_])|(?<=[A-Za-z]\d[-\u2013]))\d++(?P<decimals>\.\d++)?"
)


def _read_to(match: Match) -> str:
    """Read B2B as B to B."""
    return " to ".join(filter(None, (match["first"], match["last"], match["third"])))


def _read_digits(match: Match) -> str:
    """Read the number after letters: HDR10 is HDR十, A380 is A三八零, H100 is H一百."""
    digits = match[0].partition(".")[0]
    is_name = len(digits) > 2 and not (digits.endswith("00") and len(digits) == 3)
    if match["decimals"] is None and (is_name or (digits[0] == "0" and len(digits) > 1)):
        return spell_digits(digits)
    return spell_cardinal(match[0])


def _read_more_digits(match: Match) -> str | None:
    """Read the last part of CVE-2024-1234 and of 波音737-800."""
    is_serial = _SERIAL_BEFORE.search(text_before(match, 16))
    return spell_digits(match[0].lstrip("-")) if is_serial else None


def _read_model(match: Match) -> str | None:
    return None if match[0].endswith("00") else spell_digits(match[0])


RULES = (
    Rule("serial", _ZONE, replace_with("减"), FormStart.SIGN),
    Rule("serial", _TO, _read_to, FormStart.LETTER),
    Rule("serial", _DIGITS, _read_digits, FormStart.DIGIT),
    Rule("serial", _MORE_DIGITS, _read_more_digits, FormStart.SIGN),
    Rule("serial", _PICTURE, lambda match: spell_digits(match[0]), FormStart.DIGIT),
    Rule("serial", _MODEL, _read_model, FormStart.DIGIT),
    Rule("serial", _HYPHEN, drop, FormStart.SIGN),
    Rule("serial", _AFTER_SERIES, drop, FormStart.SIGN),
)
