"""Chemical formulas: letters and numbers one by one."""

import re

from sglang_omni.normalization.en.numbers import spell_integer
from sglang_omni.normalization.rule import FormStart, Match, Rule

_ELEMENTS = frozenset({
    "H", "He", "Li", "Be", "B", "C", "N", "O", "F", "Ne", "Na", "Mg", "Al", "Si", "P", "S", "Cl",
    "Ar", "K", "Ca", "Sc", "Ti", "V", "Cr", "Mn", "Fe", "Co", "Ni", "Cu", "Zn", "Ga", "Ge", "As",
    "Se", "Br", "Kr", "Rb", "Sr", "Y", "Zr", "Nb", "Mo", "Tc", "Ru", "Rh", "Pd", "Ag", "Cd", "In",
    "Sn", "Sb", "Te", "I", "Xe", "Cs", "Ba", "La", "Ce", "Pr", "Nd", "Sm", "Eu", "Gd", "Tb", "Dy",
    "Ho", "Er", "Tm", "Yb", "Lu", "Hf", "Ta", "W", "Re", "Os", "Ir", "Pt", "Au", "Hg", "Tl", "Pb",
    "Bi", "Po", "At", "Rn", "Fr", "Ra", "Ac", "Th", "Pa", "U", "Np", "Pu", "Am",
})  # fmt: skip
_DIATOMIC = frozenset({"H", "O", "N", "F", "Cl", "Br", "I"})
_COUNT = r"(?:\d{1,3}|[\u2080-\u2089]{1,3})"
_CHARGE = r"(?P<charge>\^?\{?[\d\u00b2\u00b3\u2070-\u2079]?[+\u2212\u207a\u207b-]\}?(?![\w(+-]))?"
_FORMULA = re.compile(
    rf"(?<![\w.$])(?P<formula>(?:[A-Z][a-z]?{_COUNT}?|\((?:[A-Z][a-z]?{_COUNT}?){{1,6}}\){_COUNT}){{1,12}})"
    rf"{_CHARGE}(?![A-Za-z0-9_])"
)
_ATOM = re.compile(rf"(?P<element>[A-Z][a-z]?)|(?P<count>{_COUNT})")
_SUBSCRIPTS = str.maketrans(
    "\u2080\u2081\u2082\u2083\u2084\u2085\u2086\u2087\u2088\u2089", "0123456789"
)
_CHARGES = str.maketrans(
    "\u00b2\u00b3\u00b9\u2070\u2074\u2075\u2076\u207a\u207b\u2212", "2310456+--", "^{}"
)


def _read(match: Match) -> str | None:
    """Read a formula of known elements: "H2O" is "H two O", "Na+" is "Na plus"."""
    atoms = list(_ATOM.finditer(match["formula"]))
    elements = [atom["element"] for atom in atoms if atom["element"]]
    has_count = len(elements) < len(atoms)
    if not _ELEMENTS.issuperset(elements):
        return None
    if len(elements) == 1 and has_count and not _is_diatomic(match, elements[0]):
        return None
    if not has_count and not _is_ion(match, elements):
        return None
    return " ".join([*map(_spell_atom, atoms), *_spell_charge(match["charge"] or "")])


def _is_diatomic(match: Match, element: str) -> bool:
    return element in _DIATOMIC and match["formula"].translate(_SUBSCRIPTS) in (
        f"{element}2",
        f"{element}3",
    )


def _is_ion(match: Match, elements: list[str]) -> bool:
    """Return whether an element with a charge is meant: "Na+", but not "B+" or "C-"."""
    is_named = (len(elements) == 1 and len(elements[0]) == 2) or elements == ["H"]
    return bool(match["charge"]) and is_named


def _spell_atom(atom: Match) -> str:
    count = atom["count"]
    return spell_integer(count.translate(_SUBSCRIPTS)) if count else atom["element"]


def _spell_charge(charge: str) -> list[str]:
    charge = charge.translate(_CHARGES)
    number = [spell_integer(charge[0])] if charge[:1].isdecimal() else []
    return [*number, "plus" if charge.endswith("+") else "minus"] if charge else []


RULES = (Rule("chemistry", _FORMULA, _read, FormStart.LETTER),)
