"""Where the front end departs from the reference, one switch for each departure."""

import re
from dataclasses import dataclass

_REFERENCE_WORTH = re.compile(r"[a-zA-Z\u4e00-\u9fff1-9]")
_WORTH = re.compile(r"[a-zA-Z\u4e00-\u9fff0-9]")


@dataclass(frozen=True)
class Rules:
    """What is mended. `REFERENCE` mends nothing and reproduces the reference's strings.

    zero: "0" alone is spoken (the reference takes it for nothing to say).
    ordinals: "1st" is "first" (the reference says "one").
    units: "10 a.m." and "3 a day" hold no amperes, "1990s" no seconds.
    signs: "-5" after a blank is "minus five" and "3-5" is "three to five" (the reference says
        "- five" and "three minus five").
    scores: Chinese "3:2" is 三比二 (the reference says 三点零二分, two minutes past three).
    currencies: "HK$20" is "twenty Hong Kong dollars" and "¥5" is "five yuan" (the reference says
        "HK twenty dollars" and leaves the sign of yuan).
    """

    zero: bool = True
    ordinals: bool = True
    units: bool = True
    signs: bool = True
    scores: bool = True
    currencies: bool = True

    def worth_speaking(self, rest: str) -> bool:
        """Whether the end of a text holds anything to say."""
        return (_WORTH if self.zero else _REFERENCE_WORTH).search(rest) is not None


PRODUCT = Rules()
REFERENCE = Rules(
    zero=False, ordinals=False, units=False, signs=False, scores=False, currencies=False
)
