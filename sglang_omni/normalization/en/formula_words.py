"""The English words of formulas: signs, comparisons, LaTeX commands, Greek letters."""

from sglang_omni.normalization.en.numbers import spell_number, to_ordinal
from sglang_omni.normalization.formulas import FormulaWords

GREEK = dict(
    zip(
        "αβγδεζηθικλμνξοπρστυφχψω",
        [
            "alpha",
            "beta",
            "gamma",
            "delta",
            "epsilon",
            "zeta",
            "eta",
            "theta",
            "iota",
            "kappa",
            "lambda",
            "mu",
            "nu",
            "xi",
            "omicron",
            "pi",
            "rho",
            "sigma",
            "tau",
            "upsilon",
            "phi",
            "chi",
            "psi",
            "omega",
        ],
        strict=True,
    )
) | {"ϕ": "phi", "ϵ": "epsilon", "ς": "sigma", "ϑ": "theta", "\u00b5": "mu"}

SIGNS = {
    "\u00d7": "times", "⋅": "times", "∙": "times", "÷": "divided by", "±": "plus or minus",
    "∓": "minus or plus", "≤": "less than or equal to", "≥": "greater than or equal to",
    "⩽": "less than or equal to", "⩾": "greater than or equal to", "≠": "not equal to",
    "≈": "approximately equal to", "≅": "congruent to", "≡": "equivalent to",
    "∝": "proportional to",
    "≪": "much less than", "≫": "much greater than", "∞": "infinity", "∑": "the sum of",
    "∏": "the product of", "∫": "the integral of", "∂": "partial", "∇": "nabla", "∆": "delta",
    "∈": "in", "∉": "not in", "⊂": "a subset of", "⊆": "a subset of or equal to",
    "\u222a": "union", "∩": "intersection", "∅": "the empty set", "∀": "for all",
    "∃": "there exists",
    "∧": "and", "\u2228": "or", "¬": "not", "∴": "therefore", "∵": "because",
    "⊥": "perpendicular to",
    "∥": "parallel to", "∠": "angle", "√": "the square root of", "∛": "the cube root of",
    "\u211d": "the real numbers", "\u2115": "the natural numbers", "\u2124": "the integers",
    "Ω": "omega",
}  # fmt: skip
COMPARISONS = {
    "==": "equals", "===": "equals", "!=": "not equal to", "<>": "not equal to",
    ">=": "greater than or equal to",
    "<=": "less than or equal to", "=>": "implies", "->": "to", "-->": "to", "<-": "from",
    "<->": "to and from", "<=>": "if and only if", ":=": "is defined as", "+=": "plus equals",
    "-=": "minus equals", "*=": "times equals", "+-": "plus or minus", "+/-": "plus or minus",
    "<<": "much less than", ">>": "much greater than", "~=": "approximately equal to",
    "&&": "and", "++": "plus plus",
}  # fmt: skip
_COMMANDS = {
    "times": "times", "cdot": "times", "ast": "times", "div": "divided by", "pm": "plus or minus",
    "mp": "minus or plus", "leq": SIGNS["≤"], "le": SIGNS["≤"], "geq": SIGNS["≥"], "ge": SIGNS["≥"],
    "neq": SIGNS["≠"], "ne": SIGNS["≠"], "approx": SIGNS["≈"], "equiv": SIGNS["≡"],
    "sim": "similar to",
    "propto": SIGNS["∝"], "infty": "infinity", "sum": "the sum of", "prod": "the product of",
    "int": "the integral of", "partial": "partial", "nabla": "nabla", "in": "in", "notin": "not in",
    "subset": SIGNS["⊂"], "cup": "union", "cap": "intersection", "emptyset": "the empty set",
    "forall": "for all", "exists": "there exists", "to": "to", "rightarrow": "to",
    "Rightarrow": "implies", "implies": "implies", "iff": "if and only if", "land": "and",
    "lor": "or", "neg": "not", "ldots": "and so on", "cdots": "and so on", "dots": "and so on",
    "circ": "degrees", "degree": "degrees", "percent": "percent", "lt": "less than",
    "gt": "greater than",
    "sin": "sine", "cos": "cosine", "tan": "tangent", "log": "log", "ln": "natural log",
    "lim": "the limit of", "quad": "", "qquad": "", "begin": "", "end": "", "angle": "angle",
    "varepsilon": "epsilon", "varphi": "phi", "hbar": "h bar", "prime": "prime",
}  # fmt: skip
_PLAIN = {
    "+": "plus", "-": "minus", "\u2212": "minus", "\u2013": "minus", "*": "times", "/": "over",
    "=": "equals", "<": "less than", ">": "greater than", "_": "sub", "!": "factorial",
    "%": "percent",
    "\\%": "percent", "°": "degrees", ",": ",", "'": "prime", ":": ":", "~": "similar to", "&": "",
    "\\\\": ",", "|": "given", "\\$": "dollars", "→": "to",
}  # fmt: skip


def spell_power(form: str, spoken: str) -> str:
    """Read an exponent: "squared", "cubed", "to the power of n"."""
    if form in ("\\circ", "°"):
        return "degrees"
    if form in ("'", "\\prime"):
        return "prime"
    return {"2": "squared", "3": "cubed"}.get(form, f"to the power of {spoken}")


def _spell_fraction(above: str, below: str) -> str:
    halves = {"two": "half", "four": "quarter", "three": "third"}
    if above == "one" and below in halves:
        return f"one {halves[below]}"
    return f"{above} over {below}"


def _spell_root(argument: str, index: str) -> str:
    names = {"": "square", "two": "square", "three": "cube"}
    name = names.get(index) or (to_ordinal(index) if index[-1:] != "n" or "-" in index else "nth")
    return f"the {name} root of {argument}"


def _spell_limits(sign: str, low: str, high: str) -> str:
    """Read a sum or an integral with its limits: "the sum from i equals one to n of"."""
    if sign == "the limit of":
        return f"the limit as {low} of" if low else sign
    bounds = f" from {low} to {high}" if low and high else f" over {low}" if low else ""
    return sign.replace(" of", f"{bounds} of")


WORDS = FormulaWords(
    symbols=_PLAIN
    | COMPARISONS
    | SIGNS
    | _COMMANDS
    | GREEK
    | {greek.upper(): f"capital {name}" for greek, name in GREEK.items()}
    | {name: name for name in GREEK.values()}
    | {"Δ": "delta", "Σ": "sigma", "Ω": "omega", "Π": "pi"},
    number=lambda form: spell_number(form),
    power=spell_power,
    fraction=_spell_fraction,
    root=_spell_root,
    limits=_spell_limits,
    absolute=lambda spoken: f"the absolute value of {spoken}",
)
