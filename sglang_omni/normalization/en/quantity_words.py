"""Plain-looking words within the forms of quantities, such as the month in "4 July 1776"."""

from sglang_omni.normalization.en.cardinals import SCALE_WORDS, SUFFIXES
from sglang_omni.normalization.en.currencies import CODES, LETTERED, SHORT_NAMES, SUFFIX_ONLY
from sglang_omni.normalization.en.months import DAY_FORMS, DAYS, MONTH_FORMS
from sglang_omni.normalization.en.times import ZONES
from sglang_omni.normalization.en.units import UNITS

_CURRENCIES = (*CODES, *LETTERED, *SHORT_NAMES, *SUFFIX_ONLY)
_DURATIONS = ("day", "days", "hour", "hours", "minute", "minutes", "second", "seconds")
_OTHERS = (
    # Eras, halves of days, fiscal years, quarters and halves of years.
    "ad", "bc", "bce", "ce", "am", "pm", "fy", "q", "h", "ca", "c",
    # Ordinals of digits, powers of units, between two numbers, and what is passed over.
    "st", "nd", "rd", "th", "sq", "cu", "fl", "deg", "x", "of", "to", "noon", "midnight", "o",
    "lakh", "crore", "t", "s", "n", "e", "w",
)  # fmt: skip


def _iter_parts(form: str) -> list[str]:
    """Return the runs of letters of a form."""
    return "".join(sign if sign.isalpha() else " " for sign in form.lower()).split()


_FORMS = (
    *MONTH_FORMS, *DAY_FORMS, *DAYS, *ZONES, *UNITS, *SCALE_WORDS, *SUFFIXES, *_CURRENCIES,
    *_DURATIONS, *_OTHERS,
)  # fmt: skip
QUANTITY_WORDS = frozenset(part for form in _FORMS for part in _iter_parts(form))
