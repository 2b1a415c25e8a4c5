"""Signs and digits that no other rule reads."""

import re
import unicodedata

from sglang_omni.normalization.rule import FormStart, Match, Rule, drop, replace_with
from sglang_omni.normalization.zh.numbers import spell_cardinal
from sglang_omni.normalization.zh.patterns import HAN_CHARACTER, form

_WORDS = {
    "@": "艾特", "#": "井号", "$": "美元", "%": "百分号", "&": "和", "/": "斜杠",
    "\\": "反斜杠", "=": "等于", "+": "加", "_": "下划线", "~": "波浪号", "^": "次方",
    "*": "星号", "|": "竖线", "°": "度", "‰": "千分号", "¥": "元", "℃": "摄氏度",
    "℉": "华氏度", "§": "第", "№": "第", "©": "版权所有", "®": "注册商标", "™": "商标",
    "π": "派", "Ω": "欧姆", "μ": "微", "µ": "微", "\u03b1": "阿尔法", "β": "贝塔", "\u03b3": "伽马",
    "δ": "德尔塔", "Δ": "德尔塔", "θ": "西塔", "λ": "兰姆达", "\u03c3": "西格玛", "ω": "欧米伽",
    "φ": "斐", "ε": "艾普西隆", "Σ": "西格玛", "\u03c1": "柔", "τ": "套", "ψ": "普西",
    "<": "小于", ">": "大于", "\u2032": "分", "″": "秒",
}  # fmt: skip
_GREEK = "".join(sign for sign in _WORDS if "\u0370" <= sign < "\u0400")

_SHARP = form(r"(?:(?<=C)|(?<=F))#")
_LATIN_AND = form(r"(?<=[A-Za-z])\s?&\s?(?=[A-Za-z])")
_HAN_OR = re.compile(rf"(?<={HAN_CHARACTER})\s?/\s?(?={HAN_CHARACTER})")
_ABOUT = form(r"(?<![\w)%])[~\u223c]\s?(?=[\d$¥€£])")
_PLUS_AFTER = form(r"(?<=[\w])(?:\+\+?|\uff0b)(?![\d])")
_PLUS_BEFORE = form(r"\+(?=\d)")
# A tilde at the end of words draws out a tone and has no name: 好的~.
_TONE = re.compile(r"[~\u223c]+")
_ARROWS = form(r"[<>]")
_BLANK_SIGNS = form(r"[`{}\[\]]+")
_RULE_OF_SIGNS = form(r"([*_=#~^|+\\-])\1{2,}+")
# Signs that count as letters, after letters: a½, m①.
_LETTERS_AND_NUMERALS = form(
    r"(?:[A-Za-z\u0391-\u03a9\u03b1-\u03c9]{0,20}"
    r"[\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u2089\u2150-\u218b\u2460-\u249b\u3220-\u3289]{1,12})++"
)
_EMOTICON = form(r"(?:\^[_oO.]?\^|=_=|-_-|>_<|@_@)")
_WORD_SIGN = form("[" + re.escape("".join(_WORDS)) + "]")
_GREEK_RUN = form(rf"(?P<sign>[{_GREEK}])(?![A-Za-z\u0370-\u03ff])")
_OTHER_DIGITS = re.compile(r"(?=[^0-9])\d+")
_OTHER_MONEY = re.compile(r"[£€₩₽₹฿₫₱₺₴₪₿¢]")


def _read_word(match: Match) -> str:
    return _WORDS[match[0]]


def _read_other_digits(match: Match) -> str:
    """Read digits of another script, such as Arabic ones."""
    return spell_cardinal("".join(str(unicodedata.decimal(digit)) for digit in match[0]))


def _read_letters_and_numerals(match: Match) -> str:
    return "".join(map(_spell_numeral, match[0]))


def _spell_numeral(character: str) -> str:
    """Return the words of a sign such as ½ or ①, and any other character as it is."""
    value = unicodedata.numeric(character, None)
    if value is None:
        return character
    if value == int(value):
        return spell_cardinal(str(int(value)))
    top, _, bottom = unicodedata.normalize("NFKC", character).partition("\u2044")
    return f"{spell_cardinal(bottom or '1')}分之{spell_cardinal(top)}"


# Tried before the signs of which they are made.
EMOTICONS = (Rule("emoji", _EMOTICON, drop, FormStart.SIGN),)
RULES = (
    Rule("symbol", _SHARP, replace_with(" sharp"), FormStart.SIGN),
    Rule("symbol", _LATIN_AND, replace_with(" and "), FormStart.SIGN),
    Rule("symbol", _HAN_OR, replace_with("或"), FormStart.SIGN),
    Rule("symbol", _ABOUT, replace_with("约"), FormStart.SIGN),
    Rule("symbol", _TONE, drop, FormStart.SIGN),
    Rule("symbol", _RULE_OF_SIGNS, drop, FormStart.SIGN),
    Rule("symbol", _BLANK_SIGNS, drop, FormStart.SIGN),
    Rule("symbol", _OTHER_DIGITS, _read_other_digits, FormStart.SIGN | FormStart.LETTER),
    Rule("symbol", _LETTERS_AND_NUMERALS, _read_letters_and_numerals, FormStart.LETTER),
    Rule("symbol", _GREEK_RUN, lambda match: _WORDS[match["sign"]], FormStart.LETTER),
    Rule("symbol", _WORD_SIGN, _read_word, FormStart.SIGN),
)
