"""What a prompt is made of: text, control tokens, and places for features."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SpecialToken:
    """A special token of the template, by its string."""

    token: str


@dataclass(frozen=True)
class PlaceholderRun:
    """`count` placeholder tokens in a row, in whose place feature rows go."""

    token: str
    count: int


Piece = SpecialToken | PlaceholderRun | str
