"""Telephone numbers: 138-0013-8000, 010-64035547, 400-800-1234, +86 ..., 拨打120."""

from sglang_omni.normalization.rule import FormStart, Match, Rule
from sglang_omni.normalization.zh.numbers import spell_digits
from sglang_omni.normalization.zh.patterns import form, text_before

_GAP = "[- ]?"
_COUNTRY = rf"(?:(?:\+|00)\s?86{_GAP}|86[- ]|\(\+?86\)\s?)?"
_EXTENSION = r"(?:(?:\s?(?:转|分机|[Ee]xt\.?|-|#)\s?)(?P<extension>\d{1,6}))?"
_START = r"(?<![\w.])(?<!\d[-,])"
_END = r"(?!\d|[.,-]\d|[A-Za-z%℃°])"

_MOBILE = form(rf"{_START}{_COUNTRY}1[3-9]\d{_GAP}\d{{4}}{_GAP}\d{{4}}{_END}")
_LANDLINE = form(
    rf"{_START}{_COUNTRY}(?:\(0\d{{2,3}}\)\s?|（0\d{{2,3}}）|0\d{{2,3}}[- ])\d{{3,4}}{_GAP}\d{{4}}"
    rf"(?!\d){_EXTENSION}{_END}"
)
_LANDLINE_ABROAD = form(
    rf"{_START}(?:\+|00)\s?86{_GAP}\d{{2,3}}[- ]\d{{7,8}}(?!\d){_EXTENSION}{_END}"
)
_SERVICE = form(
    rf"{_START}(?:[48]00|95\d|1[03]0)-?(?:\d{{3}}[- ]\d{{4}}|\d{{4}}[- ]\d{{3}}|(?<=-)\d{{7}}"
    rf"|(?<=[48]00)\d{{7}}){_EXTENSION}{_END}"
)
_INTERNATIONAL = form(
    rf"{_START}\+\d{{1,3}}[- ]?(?:\(\d{{1,4}}\)[- ]?)?\d{{1,5}}(?:[- ]\d{{2,5}}){{1,4}}+{_END}"
)
_PLAIN_INTERNATIONAL = form(rf"{_START}\+\d{{9,14}}{_END}")
_SHORT = form(r"(?<![\w.,-])(?:1\d{2,4}|9[56]\d{3,4}|400\d{7}|12\d{3,6})(?![\w.,%])")
_EXTENSION_ONLY = form(r"(?<![\w.])\d{3,8}(?![\w.,%])")

# Numbers that are known as telephone numbers with few words around them.
_KNOWN = frozenset(
    {"10086", "10010", "12306", "12315", "12348", "12328", "12329", "12123", "12320"}
)
_CALLED = form(
    r"(?:拨打|致电|打|拨|呼叫|电话|热线|来电|客服|急救|报警|火警|匪警|手机|固话|座机|传真)"
    r"[^，。！？；,!?;\n]{0,10}\Z"
)
CALL_AFTER = ("打电话", "打个电话", "热线", "客服", "电话", "急救", "报警", "短信", "专线", "平台")
_EXTENSION_BEFORE = form(r"(?:分机号?|转|总机)[是为：: ]{0,2}\Z")
_COUNTED = (
    "个",
    "元",
    "块",
    "次",
    "分钟",
    "人",
    "万",
    "名",
    "秒",
    "小时",
    "多",
    "余",
    "年",
    "台",
    "部",
    "度",
    "条",
    "位",
    "件",
    "张",
    "家",
    "只",
    "篇",
    "封",
    "天",
)


def spell_telephone(form_of_number: str) -> str:
    """Spell the digits of a telephone number, with 幺 for `one`: 13800138000."""
    return spell_digits("".join(filter(str.isdigit, form_of_number)), one="幺")


def _read(match: Match) -> str:
    """Spell a number, and 转 before its extension."""
    extension = match.groupdict().get("extension")
    if extension is None:
        return spell_telephone(match[0])
    number = match.string[match.start() : match.start("extension")]
    return f"{spell_telephone(number)}转{spell_telephone(extension)}"


def _read_short(match: Match) -> str | None:
    """Read 120 digit by digit where it is called, or where everybody knows the number."""
    after = match.string[match.end() : match.end() + 4]
    if after.startswith(_COUNTED):
        is_called = "打" in after and match[0] in _KNOWN
    else:
        is_called = (
            match[0] in _KNOWN
            or (match[0].startswith("955") and len(match[0]) == 5)
            or after.startswith(CALL_AFTER)
            or _CALLED.search(text_before(match, 16)) is not None
        )
    return spell_telephone(match[0]) if is_called else None


def _read_extension(match: Match) -> str | None:
    is_extension = _EXTENSION_BEFORE.search(text_before(match, 6)) is not None
    return spell_telephone(match[0]) if is_extension else None


RULES = (
    Rule("telephone", _MOBILE, _read, FormStart.DIGIT | FormStart.SIGN),
    Rule("telephone", _LANDLINE, _read, FormStart.DIGIT | FormStart.SIGN),
    Rule("telephone", _LANDLINE_ABROAD, _read, FormStart.DIGIT | FormStart.SIGN),
    Rule("telephone", _SERVICE, _read, FormStart.DIGIT),
    Rule("telephone", _INTERNATIONAL, _read, FormStart.SIGN),
    Rule("telephone", _PLAIN_INTERNATIONAL, _read, FormStart.SIGN),
    Rule("telephone", _SHORT, _read_short, FormStart.DIGIT),
    Rule("telephone", _EXTENSION_ONLY, _read_extension, FormStart.DIGIT),
)
