"""Arithmetic and comparisons: 2+3=5, 5*3, x²+y², ≥100, √2, 10^8, 1920x1080."""

from sglang_omni.normalization.rule import FormStart, Match, Rule, replace_with
from sglang_omni.normalization.zh.numbers import spell_cardinal
from sglang_omni.normalization.zh.patterns import form, one_of
from sglang_omni.normalization.zh.units import UNITS

# Signs with one meaning wherever they stand.
_SIGNS = {
    "≥": "大于等于", "≧": "大于等于", ">=": "大于等于", "≤": "小于等于", "≦": "小于等于",
    "<=": "小于等于", "≠": "不等于", "!=": "不等于", "==": "等于", "=": "等于", "≈": "约等于",
    "≡": "恒等于", "≌": "全等于", "±": "正负", "\u00d7": "乘", "÷": "除以", "√": "根号",
    "∛": "三次根号",
    "∞": "无穷大", "∑": "求和", "∫": "积分", "∂": "偏", "∈": "属于", "∉": "不属于", "\u222a": "并",
    "∩": "交", "⊂": "包含于", "⊆": "包含于", "∅": "空集", "∴": "所以", "∵": "因为", "∝": "正比于",
    "∠": "角", "⊥": "垂直于", "∥": "平行于", "△": "三角形", "∀": "任意", "∃": "存在", "∇": "梯度",
    "∏": "连乘", "⇒": "推出", "=>": "推出", "→": "到", "->": "到", "⟶": "到", "⇔": "等价于",
    "↔": "对", "←": "左箭头", "↑": "上升", "↓": "下降", "∆": "德尔塔",
}  # fmt: skip
_SIGN = form(rf"\s?{one_of(_SIGNS)}\s?")
# What stands at the ends of an operation: a number, a letter, a bracket or a power.
_OPERAND_BEFORE = r"(?<=[\w)\]²³πθ％%])"
_OPERAND_AFTER = r"(?=[\w(\[√π-])"
_PLUS = form(rf"{_OPERAND_BEFORE}\s?\+\s?{_OPERAND_AFTER}")
_COMPARED = form(r"\s?(?P<sign>[<>])\s?(?=[-\u2212\d.A-Za-z\u4e00-\u9fff])")
_TIMES = form(r"(?:(?<=[\d)])|(?<=[\d厘毫分]米)|(?<=\d[cm]m))\s?[*xX\u2217]\s?(?=[\d(])")
_FORMULA = r"[A-Za-z0-9.²³^(][A-Za-z0-9.²³^()+\u00d7÷*/ -]{0,20}+"
_SUBTRACT = form(rf"(?<=[\w)\]²³])\s?[-\u2212\u2013]\s?(?={_FORMULA}[=≈])")
_SUBTRACT_LATER = form(r"(?<=[\w)\]²³])\s?[-\u2212]\s?(?=[A-Za-z0-9(])")
_DIVIDE = form(r"(?<=[\d)])\s?/\s?(?=\d{1,9}\s?=)")
_SCIENTIFIC = form(r"(?<![\w.])(?P<number>\d{1,9}(?:\.\d{1,9})?)[eE](?P<power>[-+]?\d{1,3})(?!\w)")
_EXPONENT = form(r"(?<=[\w)])\^\s?(?:\{(?P<braced>-?\w{1,9})\}|(?P<power>-?\d{1,9}|[A-Za-z]))")
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ", "0123456789-+n")
_RAISED = r"(?P<base>[A-Za-z\u0391-\u03a9\u03b1-\u03c9]{0,20})(?P<power>[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ]{1,12})"
_ONE_RAISED = form(_RAISED)
# A run such as x²y² is one token, so it is read at once.
_SUPERSCRIPTED = form(rf"(?:{_RAISED})++")


def _read_sign(match: Match) -> str:
    return _SIGNS[match[0].strip()]


def _read_compared(match: Match) -> str:
    return "大于" if match["sign"] == ">" else "小于"


def _spell_power(power: str) -> str:
    """Return what 2, 3, -8 and n are as powers: 平方, 立方, 负八次方, n次方."""
    names = {"2": "平方", "3": "立方"}
    if power in names:
        return names[power]
    if power.lstrip("-").isdigit():
        return f"{spell_cardinal(power)}次方"
    if power[-1] in "+-":
        # The charge of an ion: Ca²⁺.
        number = spell_cardinal(power[:-1]) if power[:-1].isdigit() else power[:-1]
        return number + ("正" if power[-1] == "+" else "负")
    sign = {"-": "负", "+": "正"}.get(power[0], "")
    return f"{sign}{power.lstrip('-+')}次方"


def _read_exponent(match: Match) -> str:
    return f"的{_spell_power(match['braced'] or match['power'])}"


def _read_scientific(match: Match) -> str:
    """Read 5e10 as 五乘十的十次方."""
    power = match["power"].removeprefix("+")
    return f"{spell_cardinal(match['number'])}乘十的{_spell_power(power)}"


def _read_superscripts(match: Match) -> str:
    """Read x² as x的平方, 10⁻³ as 十的负三次方, a lone ² as 平方."""
    return "".join(map(_spell_superscript, _ONE_RAISED.finditer(match.string, *match.span())))


def _spell_superscript(match: Match) -> str:
    power = match["power"].translate(_SUPERSCRIPTS)
    base = match["base"]
    if base + power in UNITS and power in "23":
        return UNITS[base + power]
    has_base = base or match.string[max(0, match.start() - 1) : match.start()].isalnum()
    return f"{base}{'的' if has_base else ''}{_spell_power(power)}"


def _read_later_minus(match: Match) -> str | None:
    """Read the minus of 2*3-1, where the text before is a formula."""
    before = match.string[max(0, match.start() - 12) : match.start()]
    formula = _FORMULA_BEFORE.search(before)
    return "减" if formula else None


_FORMULA_BEFORE = form(r"[=+\u00d7÷√²³^][A-Za-z0-9.()²³]{0,11}\Z")

RULES = (
    Rule("maths", _SCIENTIFIC, _read_scientific, FormStart.DIGIT),
    Rule("maths", _SUBTRACT, replace_with("减"), FormStart.SIGN),
    Rule("maths", _SUBTRACT_LATER, _read_later_minus, FormStart.SIGN),
    Rule("maths", _PLUS, replace_with("加"), FormStart.SIGN),
    Rule("maths", _DIVIDE, replace_with("除以"), FormStart.SIGN),
    Rule("maths", _TIMES, replace_with("乘"), FormStart.SIGN | FormStart.LETTER),
    Rule("maths", _EXPONENT, _read_exponent, FormStart.SIGN),
    Rule("maths", _SUPERSCRIPTED, _read_superscripts, FormStart.SIGN | FormStart.LETTER),
    Rule("maths", _SIGN, _read_sign, FormStart.SIGN),
    Rule("maths", _COMPARED, _read_compared, FormStart.SIGN),
)
