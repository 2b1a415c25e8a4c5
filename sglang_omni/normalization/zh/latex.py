r"""Formulas in LaTeX: $\pi r^2$ is 派r的平方, \frac{1}{2} is 二分之一."""

import re

from sglang_omni.normalization.rule import FormStart, Match, Rule, drop
from sglang_omni.normalization.zh.numbers import spell_cardinal
from sglang_omni.normalization.zh.patterns import form, text_before

_COMMANDS = {
    "times": "乘", "cdot": "乘", "div": "除以", "pm": "正负", "leq": "小于等于",
    "le": "小于等于", "geq": "大于等于", "ge": "大于等于", "neq": "不等于", "ne": "不等于",
    "approx": "约等于", "sum": "求和", "int": "积分", "infty": "无穷大", "rightarrow": "到",
    "to": "到", "in": "属于", "pi": "派", "alpha": "阿尔法", "beta": "贝塔", "gamma": "伽马",
    "delta": "德尔塔", "Delta": "德尔塔", "theta": "西塔", "lambda": "兰姆达",
    "sigma": "西格玛", "omega": "欧米伽", "mu": "缪", "sqrt": "根号", "degree": "度",
    "circ": "度", "cup": "并", "cap": "交", "log": "log", "left": "", "right": "",
    "quad": "", "text": "", "mathrm": "", "mathbf": "", "lim": "极限",
}  # fmt: skip

_OPEN = form(r"\${1,2}(?=[\\A-Za-z{(])")
_CLOSE = form(r"(?<=[\w})\s])\${1,2}(?![\d])")
_OPENED = re.compile(r"\$[^$\n]{1,59}\Z")
_BRACKET = form(r"\\[()\[\]{}$%&#_,;!]")
_FRACTION = form(r"\\[dt]?frac\s?\{(?P<top>[^{}\n]{1,20})\}\s?\{(?P<bottom>[^{}\n]{1,20})\}")
_COMMAND = form(r"\\(?P<name>[A-Za-z]{1,20})")
_NUMBER = form(r"\d{1,20}")


def _read_close(match: Match) -> str | None:
    return "" if _OPENED.search(text_before(match)) else None


def _read_bracket(match: Match) -> str:
    """Read an escaped sign as the sign; brackets have no words."""
    return {"%": "百分号", "&": "和", "#": "井号", "_": "下划线", "$": "美元"}.get(match[0][1], "")


def _read_fraction(match: Match) -> str:
    r"""Read the bottom first: \frac{1}{2} is 二分之一."""
    return f"{_spell(match['bottom'])}分之{_spell(match['top'])}"


def _spell(part: str) -> str:
    return _NUMBER.sub(lambda match: spell_cardinal(match[0]), part)


def _read_command(match: Match) -> str | None:
    """Read a command that is known; the signs and letters of others are read one by one."""
    return _COMMANDS.get(match["name"])


RULES = (
    Rule("latex", _OPEN, drop, FormStart.SIGN),
    Rule("latex", _CLOSE, _read_close, FormStart.SIGN),
    Rule("latex", _FRACTION, _read_fraction, FormStart.SIGN),
    Rule("latex", _COMMAND, _read_command, FormStart.SIGN),
    Rule("latex", _BRACKET, _read_bracket, FormStart.SIGN),
)
