"""The segments of a prompt: text, special tokens and placeholders for features."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SpecialToken:
    """A special token of the template, by its string."""

    token: str


@dataclass(frozen=True)
class PlaceholderRun:
    """`count` placeholder tokens in a row, which feature rows replace."""

    token: str
    count: int


PromptSegment = SpecialToken | PlaceholderRun | str
