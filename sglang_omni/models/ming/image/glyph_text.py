"""Select the text that an image is to show: what the prompt has in quotation marks.

These are the rules of the released model, which are applied to the whole rendered prompt. Pure
functions.
"""

import re

MAX_QUOTED_WEIGHT = 20
CJK_WEIGHT = 3
OPENING_QUOTES = '"\u2018\u201c'
# In the order in which the released model lists what it found; the last text counts.
_QUOTED = (re.compile('"(.*?)"'), re.compile("\u2018(.*?)\u2019"), re.compile("\u201c(.*?)\u201d"))
_REMOVAL_WORDS = ("remove", "delete", "erase")


def select_glyph_text(prompt: str) -> str:
    """Return what the glyph encoder reads, for example `Text "Ming". `; "" if nothing is quoted."""
    prompt = _convert_single_quotes(prompt)
    found = [text for pattern in _QUOTED for text in pattern.findall(prompt)]
    if len(found) == 1 and _is_removal(prompt):
        return ""
    return f'Text "{found[-1]}". ' if found and found[-1] else ""


def _convert_single_quotes(prompt: str) -> str:
    """Replace single quotes by double ones if they enclose short texts: apostrophes do not."""
    parts = prompt.split("'")
    is_balanced = len(parts) % 2 == 1
    if is_balanced and all(_weigh(text) < MAX_QUOTED_WEIGHT for text in parts[1::2]):
        return prompt.replace("'", '"')
    return prompt


def _weigh(text: str) -> int:
    return sum(CJK_WEIGHT if "\u4e00" <= char <= "\u9fff" else 1 for char in text)


def _is_removal(prompt: str) -> bool:
    """Whether the text before the first quotation mark asks for the removal of the quoted text."""
    first = min(place for quote in OPENING_QUOTES if (place := prompt.find(quote)) >= 0)
    before = prompt[:first].lower()
    return any(word in before for word in _REMOVAL_WORDS)
