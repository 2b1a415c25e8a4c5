"""MMMU's questions without options: what an answer says, by MMMU's own parser.

After `eval/eval_utils.py` of MMMU (Apache-2.0), which SGLang and lmms-eval use as well.
"""

import re
from collections.abc import Sequence

_COMMAS = r"-?\b\d{1,3}(?:,\d{3})+\b"
_SCIENTIFIC = r"-?\d+(?:\.\d+)?[eE][+-]?\d+"
_SIMPLE = r"-?(?:\d+\.\d+|\.\d+|\d+\b)(?![eE][+-]?\d+)(?![,\d])"
_KEYS = ("could be ", "so ", "is ", "thus ", "therefore ", "final ", "answer ", "result ")
_TRIVIAL = {":", ",", ".", "!", "?", ";", "'"}

Said = str | float


def parse(answer: str) -> list[Said]:
    """Everything that an answer may be saying: lower-case texts, and numbers of two decimals."""
    keys = _key_parts(answer)
    numbers = [number for key in keys for number in _numbers(key)]
    return list({said: None for part in (*keys, *numbers) for said in normal(part)})


def matches(said: Sequence[Said], truth: str | Sequence[str]) -> bool:
    """Whether one of the things said is (for numbers) or contains (for texts) a right answer."""
    truths = [truth] if isinstance(truth, str) else truth
    right = [one for each in truths for one in normal(each)]
    texts = [one for one in right if isinstance(one, str)]
    return any(
        any(text in one for text in texts) if isinstance(one, str) else one in right for one in said
    )


def normal(text: str) -> list[Said]:
    """A number of two decimals; else lower case, with a space beside a single character."""
    text = text.strip()
    try:
        return [round(float(text.replace(",", "")), 2)]
    except ValueError:
        text = text.lower()
    return [f" {text}", f"{text} "] if len(text) == 1 else [text]


def _key_parts(answer: str) -> list[str]:
    """What follows "is", "so", "answer" and their like in each sentence, or else everything.

    The answer is in lower case before it is cut at capitals, so that it is cut at lines only: so
    the original does it.
    """
    lower = answer.strip().strip(".").lower()
    parts = re.split(r"\.\s(?=[A-Z])|\n", lower)
    found = [_shortest(part, last=index == len(parts) - 1) for index, part in enumerate(parts)]
    return [part for part in found if part and part not in _TRIVIAL] or [lower]


def _shortest(part: str, last: bool) -> str:
    keys = (*_KEYS, "=") if last else _KEYS
    shortest = ""
    for tail in (part.split(key)[-1].strip() for key in keys if key in part):
        if not shortest or len(tail) < len(shortest):
            shortest = tail
    return shortest


def _numbers(text: str) -> list[str]:
    return [one for form in (_COMMAS, _SCIENTIFIC, _SIMPLE) for one in re.findall(form, text)]
