"""The chat prompt of Ming-flash-omni-2.0, as the processor of the released model writes it.

    <role>SYSTEM</role>{system}\\n\\ndetailed thinking off<|role_end|>
    <role>HUMAN</role>{user}<|role_end|><role>ASSISTANT</role>{answer}<|role_end|> ...
    <role>HUMAN</role>{user}<|role_end|><role>ASSISTANT</role>

There is no line break between turns. A prompt is a sequence of pieces, so that only the
template can produce control tokens: text that a user wrote stays text, whatever it spells.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from sglang_omni.errors import InvalidRequest

DEFAULT_SYSTEM = "你是一个友好的AI助手。"
SPEAKERS = {"user": "HUMAN", "assistant": "ASSISTANT"}


@dataclass(frozen=True)
class Control:
    """A special token of the template, by its string."""

    token: str


ROLE = Control("<role>")
ROLE_CLOSE = Control("</role>")
ROLE_END = Control("<|role_end|>")


@dataclass(frozen=True)
class Prompt:
    """A rendered chat: control tokens and ordinary text in reading order.

    Neighbouring text is one piece, because the tokenizer merges across what the template and
    the message contribute ("。" and the blank line after it share a token).
    """

    pieces: tuple[Control | str, ...]

    def __str__(self) -> str:
        """The prompt as one string; ambiguous if a message spells a control token."""
        return "".join(p.token if isinstance(p, Control) else p for p in self.pieces)


class TextItem(Protocol):
    """One run of text of a message."""

    @property
    def text(self) -> str:
        """The text as written."""


class Turn(Protocol):
    """One message: a role (system, user or assistant) and its text, rendered in order."""

    @property
    def role(self) -> str:
        """Who speaks."""

    @property
    def content(self) -> Sequence[TextItem]:
        """What is said."""


def render_chat(messages: Sequence[Turn], thinking: bool = False) -> Prompt:
    """Render a text chat up to the point where the assistant speaks.

    A leading system message replaces the default sentence only; the line that switches
    `thinking` always follows. Raises `InvalidRequest` naming the message at fault when the
    roles do not make a chat: nothing to answer, a system message that is not the first, or a
    last message that is not the user's.
    """
    system, turns = DEFAULT_SYSTEM, list(messages)
    if turns and turns[0].role == "system":
        system, turns = _text(turns[0]), turns[1:]
    _check_roles(turns, first=len(messages) - len(turns))
    switch = "on" if thinking else "off"
    pieces = [*_turn("SYSTEM", f"{system}\n\ndetailed thinking {switch}")]
    for turn in turns:
        pieces += _turn(SPEAKERS[turn.role], _text(turn))
    return Prompt((*pieces, ROLE, SPEAKERS["assistant"], ROLE_CLOSE))


def _turn(speaker: str, text: str) -> Iterator[Control | str]:
    yield from (ROLE, speaker, ROLE_CLOSE)
    if text:
        yield text
    yield ROLE_END


def _text(turn: Turn) -> str:
    return "".join(item.text for item in turn.content)


def _check_roles(turns: Sequence[Turn], first: int) -> None:
    """`first` is the index of `turns[0]` among the messages of the request."""
    for index, turn in enumerate(turns, first):
        if turn.role == "system":
            raise InvalidRequest(
                "a system message must be the first message", param=f"messages[{index}].role"
            )
        if turn.role not in SPEAKERS:
            raise InvalidRequest(
                f"role {turn.role!r} is not one of system, user, assistant",
                param=f"messages[{index}].role",
            )
    if not turns:
        raise InvalidRequest("there is no user message to answer", param="messages")
    if turns[-1].role != "user":
        raise InvalidRequest(
            "the last message must be the user's", param=f"messages[{first + len(turns) - 1}].role"
        )
