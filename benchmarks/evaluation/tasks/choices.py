"""Letters of multiple-choice answers, as each harness parses them: one pure function per rule."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from benchmarks.evaluation.tasks.task import Verdict

_EDGES = (",", ".", "!", "?", ";", ":", "'")
# Longer answers may have the text of an option instead of its letter.
_FEW_WORDS = 5


@dataclass(frozen=True)
class FoundOption:
    """An option and its position in an answer; the last one counts."""

    letter: str
    at: int


def letters(count: int) -> list[str]:
    """Return the letters A, B, C, ..."""
    return [chr(ord("A") + index) for index in range(count)]


def format_options(options: Sequence[str], form: str = "{}. {}") -> str:
    """Format the options on lines of their own, each with its letter."""
    pairs = zip(letters(len(options)), options, strict=True)
    return "\n".join(form.format(letter, option) for letter, option in pairs)


def mmmu_letter(answer: str, options: Sequence[str]) -> str | None:
    """Parse the letter with MMMU's own rules (`eval/eval_utils.py`); None where it would guess.

    The rules: "(A)", else " A ", else in answers of more than five words the text of an option; of
    several the last.
    """
    padded = _padded(answer)
    for form in ("({})", " {} "):
        if found := _of_letters(padded, options, form, form):
            return found
    return _of_contents(padded, options)


def lmms_letter(answer: str, options: Sequence[str]) -> str | None:
    """Parse the letter with lmms-eval's rules for MMMU.

    The rules: "(A)", else "A " (even at the end of a word), else "A.", else the text of an option.
    Of several the last counts, which for all but the first form is looked up as " A "; if that is
    not found, the first of them counts.
    """
    padded = _padded(answer)
    for form, place in (("({})", "({})"), ("{} ", " {} "), ("{}.", " {} ")):
        if found := _of_letters(padded, options, form, place):
            return found
    return _of_contents(padded, options)


def answer_line(answer: str, options: Sequence[str]) -> str | None:
    """Parse the letter of the last line "Answer: X" (also bold, in brackets or with a dollar sign).

    Without such a line MMMU's rules apply.
    """
    given = "".join(letters(len(options)))
    found = re.findall(rf"(?im)answer\s*:[\s$*_(\[`]*([{given}])(?![\w'])", answer)
    return found[-1].upper() if found else mmmu_letter(answer, options)


def sglang_letter(answer: str, options: Sequence[str]) -> str | None:
    """Parse the letter with the rules of SGLang's `run_eval --eval-name mmmu`.

    The rules: the last "Answer: X", if X is an option; else "(A)", else " A ", else the text of an
    option in more than five words; of several the last. SGLang takes the first option where this
    returns None.
    """
    given = letters(len(options))
    explicit = re.findall(r"[Aa]nswer\s*:\s*\*?\*?\s*\(?([A-Z])\)?", answer)
    if explicit and explicit[-1] in given:
        return str(explicit[-1])
    padded = _padded(answer)
    texts = dict(zip(given, options, strict=True))
    found = [one for one in given if f"({one})" in padded]
    found = found or [one for one in given if f" {one} " in padded]
    if not found and len(padded.split()) > _FEW_WORDS:
        found = [one for one in given if texts[one] and texts[one].lower() in padded.lower()]
    return _last([FoundOption(one, _place(padded, one, texts[one])) for one in found])


def _place(text: str, letter: str, option: str) -> int:
    """Return the last position of a letter, in brackets or alone, or else of its text."""
    places = (text.rfind(form.format(letter)) for form in ("({})", " {} "))
    return next((place for place in places if place >= 0), text.lower().rfind(option.lower()))


def first_line(answer: str, options: Sequence[str]) -> str | None:
    """Parse the first line, if it is a letter except for case and punctuation.

    This is lm-eval's mmlu_generative: exact match with the letter, with its filters applied.
    """
    line = answer.split("\n", 1)[0].strip()
    bare = re.sub(r"[^\w\s]", "", line).upper()
    return bare if bare in letters(len(options)) else None


def or_guess(letter: str | None, right: str, count: int, seed: str) -> Verdict:
    """Return the verdict of a convention that draws a letter where none was found.

    The same sample draws the same letter in every run.
    """
    if letter is not None:
        return Verdict(letter == right, letter)
    guess = Random(seed).choice(letters(count))
    return Verdict(guess == right, guess, "guessed")


def or_first(letter: str | None, right: str) -> Verdict:
    """Return the verdict of a convention that takes the first option where no letter was found."""
    return or_wrong(letter, right) if letter else Verdict(right == "A", "A", "guessed")


def or_wrong(letter: str | None, right: str) -> Verdict:
    """Return the verdict of a convention for which no letter is a wrong one."""
    return Verdict(letter == right, letter, "parsed" if letter else "none")


def _padded(answer: str) -> str:
    for character in _EDGES:
        answer = answer.strip(character)
    return f" {answer} "


def _of_letters(text: str, options: Sequence[str], form: str, place: str) -> str | None:
    found = [
        FoundOption(letter, text.rfind(place.format(letter)))
        for letter in letters(len(options))
        if form.format(letter) in text
    ]
    return _last(found)


def _of_contents(text: str, options: Sequence[str]) -> str | None:
    if len(text.split()) <= _FEW_WORDS:
        return None
    lower = text.lower()
    pairs = zip(letters(len(options)), options, strict=True)
    return _last([FoundOption(a, lower.rfind(o.lower())) for a, o in pairs if o.lower() in lower])


def _last(found: Sequence[FoundOption]) -> str | None:
    """Return the last letter; the first of them where several positions are equal."""
    return max(found, key=lambda one: one.at).letter if found else None


# The confidence in each form of an answer, by lmms-eval's `mcq_extract`.
_SURE = {
    "start": 10,
    "end": 9,
    "phrase": 7,
    "({})": 6,
    "{}.": 5,
    "{}:": 4,
    "{})": 3,
    "{} ": 2,
    "anywhere": 0,
}
_PHRASES = (
    *(f"{the}answer is" for the in ("the ", "", "the correct ", "correct ", "the best ", "best ")),
    *(f"{the}option is" for the in ("the correct ", "correct ", "the best ", "best ")),
    *(f"{the}choice is" for the in ("the ", "", "the correct ", "correct ")),
    *("i choose", "i select", "i pick", "my answer is", "my choice is"),
    *("옵션", "정답은", "답은", "답:", "答案是", "答案为", "选", "答えは"),
)


def surest_letter(answer: str, options: Sequence[str]) -> str | None:
    """Parse the letter in the surest form, of several the last.

    This is lmms-eval's `mcq_extract`, for Video-MME. The forms: alone at the start or end, after
    "the answer is", "(A)", "A.", "A:", "A)", "A ", and failing all of them any capital that is a
    letter.
    """
    text = answer.strip()
    for character in (*_EDGES, '"'):
        text = text.strip(character)
    padded, all_letters = f" {text} ", letters(len(options))
    found = [
        (_SURE[form], padded.rfind(form.format(letter)), letter)
        for form in ("({})", "{}.", "{}:", "{})", "{} ")
        for letter in all_letters
        if form.format(letter) in padded
    ]
    found += [(_SURE["phrase"], at, letter) for at, letter in _phrased(padded, all_letters)]
    found += _at_edges(padded, all_letters)
    if not found:
        found = [(0, padded.rfind(letter), letter) for letter in all_letters if letter in padded]
    return max(found, key=lambda one: one[:2])[2] if found else None


def _phrased(padded: str, all_letters: Sequence[str]) -> list[tuple[int, str]]:
    """Return the letters after the first of each phrase, and their positions."""
    lower, found = padded.lower(), []
    for phrase in _PHRASES:
        if (at := lower.find(phrase)) >= 0:
            places = [(padded.find(one, at + len(phrase)), one) for one in all_letters]
            found += [place for place in places if place[0] >= 0]
    return found


def _at_edges(padded: str, all_letters: Sequence[str]) -> list[tuple[int, int, str]]:
    text, found = padded.strip(), []
    for letter in all_letters:
        if text.startswith(letter) and not text[1:2].isalpha():
            found.append((_SURE["start"], 0, letter))
        if text.endswith(letter) and not text[-2:-1].isalpha():
            found.append((_SURE["end"], len(padded) - 1, letter))
    return found
