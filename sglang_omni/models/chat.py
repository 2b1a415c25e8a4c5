"""How a chat becomes the thinker's tokens, and tokens an answer: what every family provides."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from sglang_omni.protocol.tools import CallPart, Tool, ToolCall, ToolChoice, ToolResult


@dataclass(frozen=True)
class PromptImage:
    """An image of `tokens` feature rows."""

    tokens: int


@dataclass(frozen=True)
class PromptVideo:
    """A video: a pair of frames at each of `seconds`, of `tokens` feature rows each."""

    tokens: int
    seconds: tuple[float, ...]


@dataclass(frozen=True)
class PromptAudio:
    """An audio clip of `tokens` feature rows."""

    tokens: int


class PromptText(Protocol):
    """A run of text of a message."""

    @property
    def text(self) -> str:
        """The text as written."""


Item = PromptText | PromptImage | PromptVideo | PromptAudio | ToolCall | ToolResult


class Turn(Protocol):
    """One message of a chat."""

    @property
    def role(self) -> str:
        """Return the role: system, user, assistant or tool."""

    @property
    def content(self) -> Sequence[Item]:
        """Return what the message holds, in order."""


@dataclass(frozen=True)
class TokenizedPrompt:
    """Token ids, and the inclusive (first, last) of every run of placeholders, in order."""

    ids: tuple[int, ...]
    runs: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Reasoning:
    """New text of the reasoning."""

    text: str


class TokenBytes(Protocol):
    """Decodes single tokens."""

    def token_bytes(self, token_id: int) -> bytes:
        """Return the UTF-8 bytes of one token, empty for a special token."""


class ToolParser(Protocol):
    """Separates the calls in one answer from its text while the answer is written.

    How the answer is cut into deltas makes no difference to the parts.
    """

    def push(self, delta: str) -> list[CallPart]:
        """Return the parts that `delta` completes, in order."""

    def finish(self) -> list[CallPart]:
        """Return what was held back, once the answer has ended."""


class ReasoningParser(Protocol):
    """Separates the reasoning in one answer from its text while the answer is written."""

    @property
    def has_ended(self) -> bool:
        """Return whether only text can follow, and none is held back."""

    def push(self, delta: str) -> list[str | Reasoning]:
        """Return the parts that `delta` completes, in order."""

    def finish(self) -> list[str | Reasoning]:
        """Return what was held back, once the answer has ended."""


class ChatFormat(TokenBytes, Protocol):
    """Prompt, tool and reasoning formats of one checkpoint. Safe to share between threads."""

    @property
    def default_system(self) -> str:
        """Return the system message of a chat that brings none."""

    @property
    def tool_tokens(self) -> TokenBytes:
        """Return a decoder under which the marks of a call, which are special tokens, are text."""

    @property
    def vocabulary_size(self) -> int:
        """Return one more than the highest id of a token."""

    def encode_prompt(self, text: str) -> tuple[int, ...]:
        """Return the tokens of a prompt that is no chat; the name of a special token stands for it.

        No token is added before or after.
        """

    def tokenize(
        self, messages: Sequence[Turn], thinking: bool = False, tools: Sequence[Tool] = ()
    ) -> TokenizedPrompt:
        """Return the tokens of a chat up to the point where the assistant begins.

        Raises:
            InvalidRequest: The roles do not make a chat; `param` names the message at fault.
        """

    def token_name(self, token_id: int) -> str:
        """Return how the tokenizer's file writes a token."""

    @property
    def markup(self) -> Collection[str]:
        """Return the tags that never reach clients, however the model writes them.

        Each has one "<", at its beginning.
        """

    def tool_parser(self, stream_arguments: bool = False) -> ToolParser:
        """Return a parser for one answer.

        With `stream_arguments` calls may arrive in pieces, for answers that a grammar constrains.
        """

    def reasoning_parser(self) -> ReasoningParser:
        """Return a parser for one answer, which may begin with reasoning even if not asked to."""

    def answer_grammar(
        self, tools: Sequence[Tool], choice: ToolChoice, schema: str | None, thinking: bool
    ) -> str | None:
        """Return the grammar of an answer that may or must call `tools`, or is JSON.

        The grammar is llguidance's Lark. Returns None where the answer is free or where `schema`
        alone describes it.
        """
