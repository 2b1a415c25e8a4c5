"""Formulas with lowered digits: H₂O, CO₂, C₆H₁₂O₆. With plain digits they are serials."""

from sglang_omni.normalization.rule import FormStart, Match, Rule
from sglang_omni.normalization.zh.numbers import spell_cardinal
from sglang_omni.normalization.zh.patterns import form

_LOWERED = "₀₁₂₃₄₅₆₇₈₉"
_TO_DIGITS = str.maketrans(_LOWERED, "0123456789")
_FORMULA = form(
    rf"(?:[A-Za-z\u0391-\u03a9\u03b1-\u03c9]{{0,12}}[{_LOWERED}]{{1,6}})++(?:[A-Za-z]{{1,3}}(?![A-Za-z]))?"
)
_NUMBER = form("[0-9]+")
# An ion: Ca2+, Na+, Cl-.
_CHARGE = form(r"(?<=[A-Za-z₀-₉])(?P<sign>[⁺⁻])")


def _spell(match: Match) -> str:
    return spell_cardinal(match[0])


def _read_formula(match: Match) -> str:
    """Read H₂O as H二O."""
    return _NUMBER.sub(_spell, match[0].translate(_TO_DIGITS))


def _read_charge(match: Match) -> str:
    return "正" if match["sign"] == "⁺" else "负"


RULES = (
    Rule("chemistry", _FORMULA, _read_formula, FormStart.LETTER | FormStart.SIGN),
    Rule("chemistry", _CHARGE, _read_charge, FormStart.SIGN),
)
