"""Whether the model reasons first, in the forms of other servers."""

from collections.abc import Mapping
from typing import Any

from sglang_omni.protocol.compat.conversions import join_names, make_error, set_default
from sglang_omni.protocol.compat.field_rules import Change, Fields, Mapped
from sglang_omni.protocol.compat.reasons import GATEWAYS, VLLM

# Keys of chat templates that turn reasoning on.
_TEMPLATE_KEYS = ("enable_thinking", "thinking")
_ENABLE_THINKING = ("chat_template_kwargs", "enable_thinking")


def convert_template_options(value: Any, fields: Fields) -> Change:
    """Convert options of chat templates: those about reasoning are known, others ignored."""
    if not isinstance(value, Mapping):
        return Change({"chat_template_kwargs": value})
    given = {name: item for name, item in value.items() if item is not None}
    flags = [given.pop(name) for name in _TEMPLATE_KEYS if name in given]
    options = {"chat_template_kwargs": {"enable_thinking": flags[0]}} if flags else {}
    return Change(options, join_names("chat_template_kwargs", given))


def convert_enable_thinking(value: Any, fields: Fields) -> Change:
    """Convert Qwen's flag."""
    return Change(set_default(fields, _ENABLE_THINKING, value))


def convert_thinking(value: Any, fields: Fields) -> Change:
    """Convert `thinking`, a flag or an object with a `type` such as "enabled"."""
    if isinstance(value, bool):
        return convert_enable_thinking(value, fields)
    kinds = {"enabled": True, "adaptive": True, "auto": True, "disabled": False}
    kind = value.get("type") if isinstance(value, Mapping) else None
    if not isinstance(kind, str) or kind not in kinds:
        raise make_error("thinking", "must be a flag, or an object with the type 'enabled'")
    ignored = join_names("thinking", [name for name in value if name != "type"])
    return Change(set_default(fields, _ENABLE_THINKING, kinds[kind]), ignored)


def convert_reasoning(value: Any, fields: Fields) -> Change:
    """Convert OpenRouter's `reasoning`: an effort, or a flag `enabled`."""
    if not isinstance(value, Mapping):
        raise make_error("reasoning", "must be a JSON object")
    rest = {name: item for name, item in value.items() if item is not None}
    effort, enabled = rest.pop("effort", None), rest.pop("enabled", None)
    changes: Fields = {}
    if effort is not None:
        changes = set_default(fields, ("reasoning_effort",), effort)
    elif enabled is not None:
        changes = set_default(fields, _ENABLE_THINKING, enabled)
    return Change(changes, join_names("reasoning", rest))


# Chats and responses have these.
THINKING_RULES = (
    Mapped(
        "chat_template_kwargs",
        VLLM,
        "`enable_thinking`, also if it is named `thinking`",
        convert_template_options,
    ),
    Mapped(
        "enable_thinking",
        GATEWAYS,
        "`chat_template_kwargs.enable_thinking`",
        convert_enable_thinking,
    ),
)
