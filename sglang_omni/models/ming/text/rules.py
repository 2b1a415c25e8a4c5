"""Departures of the front end from the reference, one switch per departure."""

import re
from dataclasses import dataclass

_REFERENCE_SPEAKABLE = re.compile(r"[a-zA-Z\u4e00-\u9fff1-9]")
_SPEAKABLE = re.compile(r"[a-zA-Z\u4e00-\u9fff0-9]")


@dataclass(frozen=True)
class Rules:
    """Switches for corrections. `REFERENCE` has none and reproduces the reference's strings.

    zero: "0" alone is spoken (the reference ignores it).
    ordinals: "1st" is "first" (the reference says "one").
    units: "10 a.m." and "3 a day" contain no amperes, "1990s" no seconds.
    signs: "-5" after a blank is "minus five" and "3-5" is "three to five" (the reference says
        "- five" and "three minus five").
    scores: Chinese "3:2" is 三比二 (the reference says 三点零二分, two minutes past three).
    currencies: "HK$20" is "twenty Hong Kong dollars" and "¥5" is "five yuan" (the reference says
        "HK twenty dollars" and keeps the yuan sign).
    """

    zero: bool = True
    ordinals: bool = True
    units: bool = True
    signs: bool = True
    scores: bool = True
    currencies: bool = True

    def is_worth_speaking(self, remaining: str) -> bool:
        """Whether the remaining text contains anything to speak."""
        return (_SPEAKABLE if self.zero else _REFERENCE_SPEAKABLE).search(remaining) is not None


PRODUCT = Rules()
REFERENCE = Rules(
    zero=False, ordinals=False, units=False, signs=False, scores=False, currencies=False
)
