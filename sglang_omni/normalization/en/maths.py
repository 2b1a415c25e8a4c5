"""Mathematics: signs between numbers and variables, powers, roots, Greek letters, LaTeX."""

import re

from sglang_omni.normalization.en.formula_words import (
    COMPARISONS,
    GREEK,
    SIGNS,
    WORDS,
    spell_power,
)
from sglang_omni.normalization.en.numbers import spell_integer, text_before
from sglang_omni.normalization.formulas import MAX_LENGTH, spell_formula
from sglang_omni.normalization.rule import FormStart, Match, Rule, replace_with

_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿⁱ", "0123456789+-ni")
_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
# Up to so many letters are variables: mc².
_MAX_VARIABLES = 2

_INLINE = re.compile(
    rf"(?<![\w$\\])\$\$?(?![\s$])(?!\d[\d.,]*[ ]?(?:[A-Za-z]{{2,}}|[-\u2013]|to\b))"
    rf"(?P<formula>[^$\n]{{1,{MAX_LENGTH}}})(?<![\s\\])\$\$?(?![\d])"
)
_DISPLAY = re.compile(
    rf"\$\$\s*(?P<formula>[^$]{{1,{MAX_LENGTH}}})\$\$|\\\((?P<inner>[^$\n]{{1,{MAX_LENGTH}}}?)\\\)"
    rf"|\\\[(?P<block>[^$]{{1,{MAX_LENGTH}}}?)\\\]"
)
_GROUP = r"\{(?:[^{}\n]|\{[^{}\n]{0,60}\}){1,120}\}"
_COMMAND = re.compile(
    rf"\\(?:d?frac{_GROUP}{_GROUP}|sqrt(?:\[\w{{1,3}}\])?{_GROUP}"
    rf"|(?:sum|int|prod|lim)(?:[_^](?:{_GROUP}|\w)){{1,2}}|[A-Za-z]{{2,12}}(?![A-Za-z\\.]))"
)
_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿⁱ]++")
_POWER = re.compile(
    r"(?<=[\w)\]}|])(?:\^|\*\*|[ ]\*\*[ ])"
    r"(?P<form>\{[^{}\n]{1,40}\}|\([^()\n]{1,40}\)|[-+\u2212]?(?:\d{1,9}(?:\.\d{1,9})?"
    r"|[A-Za-z](?![A-Za-z])))"
)
_SUBSCRIPT = re.compile(r"(?<=[A-Za-z)\]])(?:[₀₁₂₃₄₅₆₇₈₉]++|_\{(?P<form>[^{}\n]{1,30})\})")
_ABSOLUTE = re.compile(r"(?<![\w|])\|(?P<inner>[^\s|](?:[^|\n]{0,18}[^\s|])?)\|(?![\w|])")
_EQUATION_AHEAD = re.compile(
    r"[ ]?[-\u2013\u2212][ ]?(?:[\d.,]{1,12}|[A-Za-z])(?:[ ]?[-+*/\u00d7÷^\u2212][ ]?(?:"
    r"[\d.,]{1,12}|[A-Za-z])){0,6}[ ]?(?:=|≤|≥|<|>)"
)
_EQUATION_BEFORE = re.compile(r"(?:=|≤|≥)[ ]?[\d\w.,+*/\u00d7÷^() \u2212-]{0,40}$")
_OPERATOR = r"[-+*/\u00d7÷=^(\u2212]"
_MINUS = re.compile(
    r"(?<=[\w)\]²³])(?P<before>[ ]?)[-\u2013\u2212](?P<after>[ ]?)(?=[\dA-Za-z(.√π])"
)
_UNARY_MINUS = re.compile(
    r"(?:(?<=[=(±≤≥×÷])|(?<=[=±≤≥×÷] ))[-\u2212](?=[A-Za-z](?![A-Za-z])|[√π])"
)
_STAR = re.compile(
    r"(?P<blank>[ ])\*(?=[ ][\w(.√-])|(?<=\d)(?P<gap>[ ])\*(?=\d)|(?<=[\w)])\*(?=[ ]?[\w(.-])"
)
_DIVISION = re.compile(
    r"(?<![\w.,/])(?P<above>\d{1,9})[ ]?/[ ]?(?P<below>\d{1,9})(?=[ ]?[=≈<>]|[ ]?[-+*][ ]?\d)(?!/)"
)
_SCRIPT = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿⁱ₀₁₂₃₄₅₆₇₈₉"
# The whole run of letters and small signs, which is one token: "x²y₁".
_SMALL_SIGNS = re.compile(
    rf"(?:[A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0370-\u03ff]++[{_SCRIPT}]++)++"
)
_SMALL_SIGN = re.compile(
    rf"(?P<base>[A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0370-\u03ff]+)(?:(?P<raised>[{_SCRIPT[:14]}]+)|(?P<lowered>[{_SCRIPT[14:]}]+))?"
    rf"|(?P<rest>[{_SCRIPT}]+)"
)
_SLASH = re.compile(
    r"(?<![\w/])(?P<above>\d{1,4}(?=/[a-z](?![a-z]))|(?:(?<=[=+(*^-])|(?<=[=+*-] ))[a-z]"
    r"|[a-z](?=/[a-z\d]{1,4}[ ]?[=+*)-]))/(?P<below>[a-z]|\d{1,4})(?![\w/])"
)
_OVER = re.compile(r"(?<=[\d)] )/(?= [\d(])|(?<=\))/(?=[\d(a-z])")
_COMPARISON = re.compile("|".join(sorted(map(re.escape, COMPARISONS), key=len, reverse=True)))
_SIGN = re.compile("[" + "".join(SIGNS) + "]")
_ROOT = re.compile(r"√(?:\((?P<inner>[^()\n]{1,40})\)|(?P<number>\d{1,12}|[A-Za-z](?![A-Za-z])))")
_LETTER = re.compile(
    r"(?<![\u0370-\u03ff])[\u0391-\u03c9\u03d1\u03d5\u03f5\u00b5](?![\u0370-\u03ff\u0300-\u036f])"
)
_GIVEN = re.compile(r"(?<=[A-Z])[ ]?\|[ ]?(?=[A-Z]\))")
_PLUS_PLUS = re.compile(r"(?<=\bC)\+\+|(?<=\b[A-Z])\+(?![\w+])")


def _read_formula(match: Match) -> str | None:
    groups = match.groupdict()
    formula = next((text for text in groups.values() if text), match[0])
    return spell_formula(formula, WORDS) or None


def _read_raised(match: Match) -> str:
    """Read a power after a variable or a number, and a note after a word."""
    before = text_before(match)
    is_base = re.search(r"(?:(?<![A-Za-z])[A-Za-z]|[\d)\]]|[\u0370-\u03ff])$", before)
    spoken = _spell_small(match[0])
    return spell_power(match[0].translate(_SUPERSCRIPTS), spoken) if is_base else spoken


def _read_small_signs(match: Match) -> str:
    return " ".join(map(_spell_small_sign, _SMALL_SIGN.finditer(match[0])))


def _spell_small_sign(match: Match) -> str:
    """Read a variable with its power or index, or a word with the number of a note."""
    base, raised, lowered = match["base"], match["raised"], match["lowered"]
    if raised and len(base) <= _MAX_VARIABLES:
        return spell_formula(base + raised, WORDS)
    small = raised or lowered or match["rest"] or ""
    return f"{base or ''} {_spell_small(small)}".strip()


def _spell_small(signs: str) -> str:
    plain = signs.translate(_SUPERSCRIPTS).translate(_SUBSCRIPTS)
    return spell_integer(plain) if plain.isdecimal() else spell_formula(plain, WORDS)


def _read_division(match: Match) -> str:
    return f"{spell_integer(match['above'])} divided by {spell_integer(match['below'])}"


def _read_power(match: Match) -> str:
    form = match["form"].strip("{}()")
    return spell_power(form, spell_formula(form, WORDS))


def _read_subscript(match: Match) -> str:
    form = match["form"]
    if form is None:
        return spell_integer(match[0].translate(_SUBSCRIPTS))
    return f"sub {spell_formula(form, WORDS)}"


def _read_absolute(match: Match) -> str:
    return f"the absolute value of {spell_formula(match['inner'], WORDS)}"


def _read_minus(match: Match) -> str | None:
    """Read a minus within an equation, whose other side may stand before or after it."""
    start = match.start()
    is_spaced = bool(match["before"]) == bool(match["after"]) or not match["before"]
    is_equation = _EQUATION_AHEAD.match(match.string, start) or _EQUATION_BEFORE.search(
        text_before(match)
    )
    return f"{match['before']}minus{match['after']}" if is_spaced and is_equation else None


def _read_star(match: Match) -> str | None:
    start, end = match.start(), match.end()
    before, after = match.string[max(0, start - 2) : start].strip(), match.string[end : end + 2]
    is_word = before.isalpha() and after[:1].isalpha() and (len(before) > 1 or after.isalpha())
    blank = match["blank"] or match["gap"] or ""
    return None if is_word and not blank else f"{blank}times"


def _read_slash(match: Match) -> str:
    above, below = match["above"], match["below"]
    return " over ".join(
        spell_integer(side) if side.isdecimal() else side for side in (above, below)
    )


def _read_root(match: Match) -> str:
    return f"the square root of {spell_formula(match['inner'] or match['number'], WORDS)}"


def _read_letter(match: Match) -> str:
    return GREEK.get(match[0]) or GREEK[match[0].lower()]


_ANY = FormStart.SIGN | FormStart.LETTER
EARLY_RULES = (
    Rule("formula", _DISPLAY, _read_formula, FormStart.SIGN),
    Rule("formula", _INLINE, _read_formula, FormStart.SIGN),
    Rule("formula", _COMMAND, _read_formula, FormStart.SIGN),
    Rule("maths", _ABSOLUTE, _read_absolute, FormStart.SIGN),
    Rule("maths", _GIVEN, replace_with(" given "), FormStart.SIGN),
    Rule("maths", _POWER, _read_power, FormStart.SIGN),
    Rule("maths", _UNARY_MINUS, replace_with("minus "), FormStart.SIGN),
    Rule("maths", _MINUS, _read_minus, FormStart.SIGN),
    Rule("maths", _DIVISION, _read_division, FormStart.DIGIT),
)
RULES = (
    Rule("maths", _SMALL_SIGNS, _read_small_signs, FormStart.LETTER),
    Rule("maths", _RAISED, _read_raised, _ANY),
    Rule("maths", _SUBSCRIPT, _read_subscript, FormStart.SIGN),
    Rule("maths", _ROOT, _read_root, FormStart.SIGN),
    Rule("maths", _PLUS_PLUS, lambda match: " ".join(["plus"] * len(match[0])), FormStart.SIGN),
    Rule("maths", _COMPARISON, lambda match: COMPARISONS[match[0]], FormStart.SIGN),
    Rule("maths", _STAR, _read_star, FormStart.SIGN),
    Rule("maths", _SLASH, _read_slash, FormStart.LETTER | FormStart.DIGIT),
    Rule("maths", _OVER, replace_with("divided by"), FormStart.SIGN),
    Rule("maths", _SIGN, lambda match: SIGNS[match[0]], _ANY),
    Rule("maths", _LETTER, _read_letter, FormStart.LETTER),
)
