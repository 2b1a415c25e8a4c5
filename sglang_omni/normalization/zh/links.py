"""Links, mail addresses, paths and the like in Chinese: a.com/b is a点com斜杠b."""

from sglang_omni.normalization.links import LinkWords, build_rules
from sglang_omni.normalization.zh.numbers import spell_cardinal, spell_digits

SIGN_WORDS = {
    ".": "点", "/": "斜杠", "-": "杠", "_": "下划线", "@": "艾特", ":": "冒号", "?": "问号",
    "=": "等于", "&": "和", "#": "井号", "%": "百分号", "+": "加", "~": "波浪号",
    "*": "星号", "\\": "反斜杠", "$": "美元符", ",": "逗号", ";": "分号", "!": "感叹号",
}  # fmt: skip


def spell_link_number(digits: str) -> str:
    """Read digits within a link: 42 is 四十二, 8080 and 05 digit by digit."""
    is_code = len(digits) > 2 or digits.startswith("0")
    return spell_digits(digits) if is_code else spell_cardinal(digits)


WORDS = LinkWords(signs=SIGN_WORDS, number=spell_link_number, octet=spell_digits, separator="")

RULES = build_rules(WORDS)
