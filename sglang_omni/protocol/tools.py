"""Functions that a model may call, their calls and their results."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Tool:
    """A function that the model may call.

    Attributes:
        name: Name of the function.
        description: What it does, for the model to read.
        parameters: JSON schema of its arguments.
        strict: Whether a call must satisfy the schema.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    strict: bool = False


@dataclass(frozen=True)
class ToolChoice:
    """Which functions an answer calls.

    Attributes:
        forced: Whether the answer must be calls and nothing else.
        only: Names of the functions that may be called; empty for all that are offered.
        parallel: Whether one answer may call several.
    """

    forced: bool = False
    only: tuple[str, ...] = ()
    parallel: bool = True

    def choose(self, tools: Sequence[Tool]) -> tuple[Tool, ...]:
        """Return those of `tools` that may be called."""
        return tuple(tool for tool in tools if not self.only or tool.name in self.only)


TOOL_CHOICE_AUTO = ToolChoice()


@dataclass(frozen=True)
class ToolCall:
    """A call of a function by the model. `arguments` is the text of a JSON object."""

    name: str
    arguments: str


def build_tool_call(call: ToolCall) -> dict[str, Any]:
    """Return OpenAI's object of a call, with a new id."""
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": f"call_{secrets.token_hex(12)}", "type": "function", "function": function}


@dataclass(frozen=True)
class InvalidToolCall:
    """A call that the model began but that is incomplete or not a name with a JSON object."""


@dataclass(frozen=True)
class ToolCallStart:
    """The beginning of a call whose arguments follow as deltas, and then the whole `ToolCall`.

    A call that is cut ends as an `InvalidToolCall` instead.
    """

    name: str


@dataclass(frozen=True)
class ToolCallDelta:
    """More text of the arguments of the call that began last."""

    arguments: str


CallPart = str | ToolCallStart | ToolCallDelta | ToolCall | InvalidToolCall
"""A part of an answer: text, a call, or a piece of one."""


@dataclass(frozen=True)
class ToolResult:
    """What a function returned."""

    text: str
