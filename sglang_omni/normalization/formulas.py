"""Formulas of LaTeX and plain mathematics, read with the words of either language."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

# Formulas are short; what is nested deeper is read without its structure.
MAX_LENGTH = 300
_MAX_DEPTH = 12


@dataclass(frozen=True)
class FormulaWords:
    """How one language speaks a formula.

    Attributes:
        symbols: The words of signs ("+") and commands ("times" for LaTeX's multiplication).
        number: Reads a number.
        power: Returns the words of an exponent, from its form and its words.
        fraction: Returns the words of a fraction, from its two parts in words.
        root: Returns the words of a root, from its argument and its index in words ("" for two).
        absolute: Returns the words of an absolute value.
        limits: Returns the words of a sum or an integral, from its sign, lower and upper limit.
        separator: What stands between two parts.
    """

    symbols: Mapping[str, str]
    number: Callable[[str], str]
    power: Callable[[str, str], str]
    fraction: Callable[[str, str], str]
    root: Callable[[str, str], str]
    absolute: Callable[[str], str]
    limits: Callable[[str, str, str], str]
    separator: str = " "


_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\d+(?:[.,]\d+)*|[A-Za-z]+|\*\*|[<>!=]=|->|=>|\S", re.DOTALL)
_FUNCTIONS = frozenset(
    [
        "sin",
        "cos",
        "tan",
        "cot",
        "sec",
        "log",
        "ln",
        "lg",
        "exp",
        "max",
        "min",
        "lim",
        "det",
        "gcd",
        "mod",
    ]
)
_TEXTS = frozenset(
    [
        "text",
        "mathrm",
        "mathbf",
        "mathit",
        "mathbb",
        "mathcal",
        "operatorname",
        "textbf",
        "vec",
        "hat",
        "bar",
    ]
)
_LIMITED = frozenset({"\\sum", "\\int", "\\prod", "\\lim", "\\oint", "∑", "∫", "∏"})
_FRACTIONS = frozenset({"\\frac", "\\dfrac", "\\tfrac"})
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿⁱ⁽⁾", "0123456789+-ni()")
_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉₊₋", "0123456789+-")
_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿⁱ⁽⁾]+")
_LOWERED = re.compile("[₀₁₂₃₄₅₆₇₈₉₊₋]+")
_CLOSING = {"{": "}", "(": ")", "[": "]"}


def spell_formula(formula: str, words: FormulaWords) -> str:
    r"""Read a formula: "E = mc^2" is "E equals m c squared", "\frac{1}{2}" a fraction."""
    plain = _RAISED.sub(lambda match: f"^{{{match[0].translate(_SUPERSCRIPTS)}}}", formula)
    plain = _LOWERED.sub(lambda match: f"_{{{match[0].translate(_SUBSCRIPTS)}}}", plain)
    return _Reader(_TOKEN.findall(plain[:MAX_LENGTH]), words).read(len(plain), 0)


class _Reader:
    """Reads the tokens of a formula from left to right."""

    def __init__(self, tokens: list[str], words: FormulaWords) -> None:
        self._tokens, self._words = tokens, words
        self._position = 0

    def read(self, end: int, depth: int) -> str:
        """Read the tokens up to a position."""
        spoken: list[str] = []
        while self._position < min(end, len(self._tokens)):
            spoken.append(self._read_one(depth))
        return self._join(spoken)

    def _join(self, parts: list[str]) -> str:
        return self._words.separator.join(part for part in parts if part)

    def _read_one(self, depth: int) -> str:
        token = self._tokens[self._position]
        self._position += 1
        if token in ("^", "**"):
            return self._read_power(depth)
        if token in _FRACTIONS:
            above, below = self._read_argument(depth), self._read_argument(depth)
            return self._words.fraction(above, below)
        if token in ("\\sqrt", "√"):
            index = self._read_argument(depth) if self._next() == "[" else ""
            return self._words.root(self._read_argument(depth), index)
        if token in _LIMITED:
            return self._read_limits(token, depth)
        if token == "|" and "|" in self._tokens[self._position :]:
            return self._read_absolute(depth)
        return self._spell(token)

    def _spell(self, token: str) -> str:
        """Read one token by itself."""
        if token[0].isdecimal():
            return self._words.number(token)
        name = token[1:] if token.startswith("\\") and token[1:].isalpha() else token
        if name in _TEXTS or name in ("left", "right", "displaystyle", "limits"):
            return ""
        if token in self._words.symbols or name in self._words.symbols:
            return self._words.symbols.get(token) or self._words.symbols[name]
        if token.startswith("\\") or name in _FUNCTIONS:
            return name if name.isalpha() else ""
        return (
            self._words.separator.join(token)
            if token.isascii() and token.isalpha()
            else (token if token.isalnum() else "")
        )

    def _next(self) -> str:
        return self._tokens[self._position] if self._position < len(self._tokens) else ""

    def _read_argument(self, depth: int) -> str:
        """Read a group in brackets, or one token."""
        opening = self._next()
        if opening not in _CLOSING:
            return self._read_operand(depth) if opening else ""
        self._position += 1
        if depth >= _MAX_DEPTH:
            return ""
        end = self._find_end(opening)
        spoken = self.read(end, depth + 1)
        self._position = end + 1
        return spoken

    def _read_operand(self, depth: int) -> str:
        token = self._next()
        if token.isascii() and token.isalpha() and len(token) > 1:
            # The exponent of `x^2y` and of `x^ab` is one character.
            self._tokens[self._position : self._position + 1] = [token[0], token[1:]]
        if token in "+-\u2212":
            sign = self._read_one(depth)
            return self._join([sign, self._read_operand(depth)]) if self._next() else sign
        return self._read_one(depth)

    def _find_end(self, opening: str) -> int:
        """Return the position of the bracket that closes the group before the present one."""
        depth = 1
        for position in range(self._position, len(self._tokens)):
            token = self._tokens[position]
            depth += (token == opening) - (token == _CLOSING[opening])
            if not depth:
                return position
        return len(self._tokens)

    def _read_power(self, depth: int) -> str:
        start = self._position
        spoken = self._read_argument(depth)
        form = "".join(self._tokens[start : self._position]).strip("{}()")
        return self._words.power(form, spoken)

    def _read_limits(self, token: str, depth: int) -> str:
        limits = {"_": "", "^": ""}
        while (sign := self._next()) in limits and sign:
            self._position += 1
            limits[sign] = self._read_argument(depth)
        return self._words.limits(self._spell(token), limits["_"], limits["^"])

    def _read_absolute(self, depth: int) -> str:
        end = self._tokens.index("|", self._position)
        spoken = self.read(end, depth + 1)
        self._position = end + 1
        return self._words.absolute(spoken)
