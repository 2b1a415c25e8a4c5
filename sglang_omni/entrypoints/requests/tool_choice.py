"""Checks of `tools` and `tool_choice`."""

from collections.abc import Sequence

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.protocol.errors import InvalidRequest
from sglang_omni.protocol.tools import Tool, ToolChoice

NO_GRAMMAR_SUPPORT = (
    "the thinker was started without llguidance, the grammar back end that this needs"
)


def check_tool_choice(
    tools: Sequence[Tool], tool_choice: ToolChoice, backend: Backend, prefix: str = ""
) -> None:
    """Check that the server can enforce a tool choice.

    Raises `InvalidRequest`, naming the field with `prefix` before it.
    """
    names = {tool.name for tool in tools}
    if missing := sorted(set(tool_choice.only) - names):
        raise _invalid_field(
            f"{prefix}tool_choice", f"there is no function {missing[0]!r} among the tools"
        )
    if tool_choice.forced and not tools:
        raise _invalid_field(f"{prefix}tool_choice", "requires tools")
    # Ask the thinker only if needed, because it may be restarting.
    is_constrained = tool_choice.forced or bool(tool_choice.only)
    if (is_constrained or any(tool.strict for tool in tools)) and not backend.supports_grammar:
        raise _invalid_field(
            f"{prefix}tool_choice" if is_constrained else f"{prefix}tools", NO_GRAMMAR_SUPPORT
        )


def _invalid_field(field: str, reason: str) -> InvalidRequest:
    return InvalidRequest(f"{field}: {reason}", param=field)
