"""How each language names characters, digits, numbers and dates that stand alone."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sglang_omni.normalization.en import links as en_links
from sglang_omni.normalization.en import numbers as en_numbers
from sglang_omni.normalization.en import symbols as en_symbols
from sglang_omni.normalization.en.months import MONTHS
from sglang_omni.normalization.en.telephone import spell_groups
from sglang_omni.normalization.en.years import spell_short_year
from sglang_omni.normalization.language import Language
from sglang_omni.normalization.zh import links as zh_links
from sglang_omni.normalization.zh import numbers as zh_numbers
from sglang_omni.normalization.zh.telephone import spell_telephone

_EXTENSION = re.compile(r"(?:ext\.?|x|转|分机|#)", re.IGNORECASE)


@dataclass(frozen=True)
class Spelling:
    """How one language spells.

    Attributes:
        signs: The name of each sign; one that is absent is not spoken.
        cardinal: Reads a number, which may have a sign, a point and separators.
        ordinal: Reads digits as an ordinal.
        digits: Reads digits one by one.
        telephone: Reads a telephone number, perhaps with an extension.
        date: Reads a year, a month and a day in digits; an empty one is absent.
        join: Joins the names of characters.
    """

    signs: Mapping[str, str]
    cardinal: Callable[[str], str]
    ordinal: Callable[[str], str]
    digits: Callable[[str], str]
    telephone: Callable[[str], str]
    date: Callable[[str, str, str], str]
    join: Callable[[Sequence[str]], str]

    def name_of(self, character: str) -> str:
        """Return the name of a character, "" for one that is not spoken."""
        if character in "0123456789":
            return self.digits(character)
        return character.upper() if character.isalpha() else self.signs.get(character, "")


def _spell_english_telephone(text: str) -> str:
    number, *extension = _EXTENSION.split(text, maxsplit=1)
    words = spell_groups(number)
    digits = "".join(filter(str.isdigit, "".join(extension)))
    return f"{words}, extension {en_numbers.spell_digits(digits)}" if digits else words


def _spell_chinese_telephone(text: str) -> str:
    parts = [spell_telephone(part) for part in _EXTENSION.split(text, maxsplit=1)]
    return "转".join(filter(None, parts))


def _spell_english_date(year: str, month: str, day: str) -> str:
    name = MONTHS[int(month) - 1] if month else ""
    monthly = f"{name} {en_numbers.spell_ordinal(day)}" if day else name
    yearly = spell_short_year(year) if year else ""
    return (", " if day else " ").join(filter(None, (monthly, yearly)))


def _spell_chinese_date(year: str, month: str, day: str) -> str:
    words = f"{zh_numbers.spell_digits(year)}年" if year else ""
    words += f"{zh_numbers.spell_cardinal(month)}月" if month else ""
    return words + (f"{zh_numbers.spell_cardinal(day)}日" if day else "")


def _join_chinese(names: Sequence[str]) -> str:
    """Join names, with a blank between letters only."""
    return re.sub(r"(?<=[A-Za-z])(?=[A-Za-z])", " ", "".join(names))


SPELLINGS: Mapping[Language, Spelling] = {
    "en": Spelling(
        signs=en_symbols.SIGNS | dict(en_links.WORDS.signs),
        cardinal=en_numbers.spell_number,
        ordinal=en_numbers.spell_ordinal,
        digits=en_numbers.spell_digits,
        telephone=_spell_english_telephone,
        date=_spell_english_date,
        join=" ".join,
    ),
    "zh": Spelling(
        signs=zh_links.SIGN_WORDS,
        cardinal=lambda number: zh_numbers.spell_cardinal(number.lstrip("+")),
        ordinal=lambda digits: f"第{zh_numbers.spell_cardinal(digits)}",
        digits=zh_numbers.spell_digits,
        telephone=_spell_chinese_telephone,
        date=_spell_chinese_date,
        join=_join_chinese,
    ),
}
