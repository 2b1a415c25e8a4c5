"""MMMU's questions without options: parse an answer with MMMU's own rules.

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


def parse_open_answer(answer: str) -> list[Said]:
    """Return the candidate answers in a text: lower-case texts, and numbers with two decimals."""
    keys = _key_parts(answer)
    numbers = [number for key in keys for number in _numbers(key)]
    return list({said: None for part in (*keys, *numbers) for said in normalise_answer(part)})


def matches_truth(said: Sequence[Said], truth: str | Sequence[str]) -> bool:
    """Return whether a candidate equals (numbers) or contains (texts) a right answer."""
    truths = [truth] if isinstance(truth, str) else truth
    right = [candidate for truth_text in truths for candidate in normalise_answer(truth_text)]
    texts = [candidate for candidate in right if isinstance(candidate, str)]
    return any(
        any(text in candidate for text in texts)
        if isinstance(candidate, str)
        else candidate in right
        for candidate in said
    )


def normalise_answer(text: str) -> list[Said]:
    """Return a number with two decimals, and other text in lower case.

    A single character is returned twice: after a space, and before one.
    """
    text = text.strip()
    try:
        return [round(float(text.replace(",", "")), 2)]
    except ValueError:
        text = text.lower()
    return [f" {text}", f"{text} "] if len(text) == 1 else [text]


def _key_parts(answer: str) -> list[str]:
    """Return what follows "is", "so", "answer" and the like in each sentence, or else everything.

    The answer is in lower case before it is split at capitals, so that it is split only at lines,
    as the original does.
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
