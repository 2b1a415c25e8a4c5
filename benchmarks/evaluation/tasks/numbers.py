"""Numbers in GSM8K's answers, as each harness parses them: one pure function per rule."""

import re
from decimal import Decimal, InvalidOperation

# lm-eval's gsm8k: its two filters, and the patterns that its exact match ignores.
_STRICT = re.compile(r"#### (\-?[0-9\.\,]+)")
_FLEXIBLE = re.compile(r"(-?[$0-9.,]{2,})|(-?[0-9]+)")
_LLAMA = re.compile(r"The final answer is ((-?[$0-9.,]{2,})|(-?[0-9]+))")
_IGNORED = (re.compile(r","), re.compile(r"\$"), re.compile(r"(?s).*#### "), re.compile(r"\.$"))


def read_truth(answer: str) -> str:
    """Return the number after "####" in an answer of the data set."""
    return answer.rsplit("####", 1)[-1].strip()


def last_digits(answer: str) -> str | None:
    """Return the last run of digits without commas (SGLang's `few_shot_gsm8k`).

    Of "$3.50" it is 50, and a sign is lost. A run that is no Python number (007) counts as none.
    """
    found = re.findall(r"\d+", answer.replace(",", ""))
    if not found or (len(found[-1]) > 1 and found[-1].startswith("0") and found[-1].strip("0")):
        return None
    return str(int(found[-1]))


def last_signed(answer: str) -> str | None:
    """Return the last number with sign and fraction, without commas.

    This is SGLang's `run_eval --eval-name gsm8k`. Text that is no Python number (007) counts as
    none.
    """
    found = re.findall(r"-?\d+\.?\d*", answer.replace(",", ""))
    if not found or re.fullmatch(r"-?0+[1-9]\d*", found[-1]):
        return None
    return found[-1]


def after_hashes(answer: str) -> str | None:
    """Return the first number after "#### " (lm-eval, strict-match)."""
    found = _STRICT.search(answer)
    return found.group(1).strip() if found else None


def last_flexible(answer: str) -> str | None:
    """Return the last text that looks like a number, with dollar signs.

    This is lm-eval's flexible-extract.
    """
    found = _FLEXIBLE.findall(answer)
    return next(part for part in found[-1] if part).strip() if found else None


def final_answer(answer: str) -> str | None:
    """Return the last number after "The final answer is ".

    This is lm-eval's strict-match of gsm8k_cot_llama.
    """
    found = _LLAMA.findall(answer)
    return found[-1][0].strip() if found else None


def last_number(answer: str) -> str | None:
    """Return the last number as people write it: with sign, thousands separators and fraction.

    Currency, a trailing point and percent signs are removed.
    """
    found = re.findall(r"(?<![\w.])-?\$?\d[\d,]*(?:\.\d+)?", answer)
    return found[-1].replace("$", "").replace(",", "") if found else None


def same_text(extracted: str, truth: str) -> bool:
    """Return whether lm-eval's exact match treats two numbers as equal.

    They are compared as text, without commas, dollar signs and a trailing point.
    """
    return _plain(extracted) == _plain(truth)


def same_value(extracted: str, truth: str) -> bool:
    """Return whether two numbers have the same value: 18 and 18.00."""
    try:
        return Decimal(extracted.replace(",", "")) == Decimal(truth.replace(",", ""))
    except InvalidOperation:
        return False


def _plain(number: str) -> str:
    for pattern in _IGNORED:
        number = pattern.sub("", number)
    return number.lower()
