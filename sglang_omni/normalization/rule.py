"""Rules: how one class of written forms is read, and how rules are applied to a text."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Flag, auto
from functools import partial

Match = re.Match[str]


class FormStart(Flag):
    """What a written form starts with; a rule is tried only where a form of its kind may start."""

    DIGIT = auto()
    LETTER = auto()
    """A letter of any script without Han."""
    HAN = auto()
    SIGN = auto()
    """Anything else: punctuation, symbols, emoji, white space."""


@dataclass(frozen=True)
class Rule:
    """How one class of written forms is read.

    Attributes:
        name: The class, such as "date". It is shown to users (`sgl-omni normalize --explain`).
        pattern: The written form. It is matched where a token starts (`RuleSet.read_at`). A
            look-behind sees the text before it.
        read: Returns the words of a match, "" for nothing to speak, or None where the form is not
            of this class after all and the next rule is to be tried.
        starts: What the form may start with.
    """

    name: str
    pattern: re.Pattern[str]
    read: Callable[[Match], str | None]
    starts: FormStart


@dataclass(frozen=True)
class Reading:
    """The words for `text[start:end]`, and the name of the rule that made them."""

    start: int
    end: int
    words: str
    name: str


def keep(match: Match) -> str:
    """Read a written form as it is: it is spoken as written, and no other rule is tried."""
    return match[0]


def drop(_: Match) -> str:
    """Read a written form as nothing."""
    return ""


def replace_with(words: str) -> Callable[[Match], str]:
    """Return a `read` that gives the same words for every match."""
    return partial(_constant, words)


def _constant(words: str, _: Match) -> str:
    return words


class RuleSet:
    """The rules of one language, in order: the first that accepts a form reads it."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        """Keep the rules by what a form starts with."""
        self._rules = tuple(rules)
        self._by_start = {
            start: tuple(rule for rule in self._rules if start in rule.starts)
            for start in FormStart
        }

    def with_first(self, rule: Rule) -> "RuleSet":
        """Return a set that tries another rule first."""
        return RuleSet((rule, *self._rules))

    def with_named_first(self, names: frozenset[str]) -> "RuleSet":
        """Return a set that tries the rules of some names before the others."""
        return RuleSet(sorted(self._rules, key=lambda rule: rule.name not in names))

    def read_at(self, text: str, position: int, start: FormStart) -> Reading | None:
        """Return the reading of the form at a position, or None if no rule accepts one."""
        for rule in self._by_start[start]:
            match = rule.pattern.match(text, position)
            if match is None or match.end() == position:
                continue
            words = rule.read(match)
            if words is not None:
                return Reading(position, match.end(), words, rule.name)
        return None
