"""Which functions an answer may be held to call."""

from collections.abc import Sequence

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.protocol.errors import InvalidRequest
from sglang_omni.protocol.tools import Tool, ToolChoice

NO_GRAMMAR_SUPPORT = (
    "the thinker was started without llguidance, SGLang's grammar back end for that"
)


def check_tool_choice(
    tools: Sequence[Tool], calling: ToolChoice, backend: Backend, prefix: str = ""
) -> None:
    """Refuse calls that cannot be had. `prefix` stands before the names of fields.

    Raises `InvalidRequest`, naming the field.
    """
    offered = {tool.name for tool in tools}
    if missing := sorted(set(calling.only) - offered):
        raise _invalid_field(
            f"{prefix}tool_choice", f"there is no function {missing[0]!r} among the tools"
        )
    if calling.forced and not tools:
        raise _invalid_field(f"{prefix}tool_choice", "needs tools")
    # What the thinker knows is asked only where it matters: it may be about to start again.
    is_held = calling.forced or bool(calling.only)
    if (is_held or any(tool.strict for tool in tools)) and not backend.supports_grammar:
        raise _invalid_field(
            f"{prefix}tool_choice" if is_held else f"{prefix}tools", NO_GRAMMAR_SUPPORT
        )


def _invalid_field(field: str, reason: str) -> InvalidRequest:
    return InvalidRequest(f"{field}: {reason}", param=field)
