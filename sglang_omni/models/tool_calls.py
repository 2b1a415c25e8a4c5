r"""Tool calls as JSON between `<tool_call>` and `</tool_call>`, as most models write them.

A family whose model writes them so uses this parser, and the grammar of `answer_grammar.py`:

    <tool_call>\n{"name": "look", "arguments": {"at": "mill"}}\n</tool_call>
"""

import json
import re
from collections.abc import Iterable
from typing import Any

from sglang_omni.models.chat import TokenBytes
from sglang_omni.protocol.tools import CallPart, InvalidToolCall, ToolCall
from sglang_omni.protocol.unicode import is_unicode

CALL, CALL_CLOSE = CALL_TOKENS = "<tool_call>", "</tool_call>"
STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


class ToolTokenDecoder:
    """Decodes tokens as a family does, but the special tokens of a tool call as text."""

    def __init__(self, decoder: TokenBytes, call_token_ids: Iterable[int]) -> None:
        """Take the family's decoder and the ids of `CALL_TOKENS`."""
        self._decoder = decoder
        names = (token.encode() for token in CALL_TOKENS)
        self._call_tokens = dict(zip(call_token_ids, names, strict=True))

    def token_bytes(self, token_id: int) -> bytes:
        """Return the UTF-8 bytes of a token; empty for any other special token."""
        return self._call_tokens.get(token_id) or self._decoder.token_bytes(token_id)


def parse_call(text: str) -> ToolCall | None:
    """Parse the text between the tokens of a call; return None if it is not a call."""
    try:
        call = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return None
    arguments = call.get("arguments", {})
    if not isinstance(arguments, dict) or not is_unicode(call["name"]):
        return None
    return ToolCall(call["name"], _dump_arguments(arguments))


def _dump_arguments(arguments: dict[str, Any]) -> str:
    """Return the arguments as JSON, with escapes only if they contain a lone surrogate."""
    text = json.dumps(arguments, ensure_ascii=False)
    return text if is_unicode(text) else json.dumps(arguments)


class ToolCallParser:
    """Separates the calls of one answer from its text, while it is generated.

    A call token never becomes text. Invalid text between call tokens, and a call that does not end,
    become an `InvalidToolCall`. A closing token alone is dropped. Text that may be the beginning of
    a call token is held back until more text arrives; the result does not depend on the deltas.
    """

    def __init__(self) -> None:
        self._pending = ""
        self._after_call = False

    def push(self, delta: str) -> list[CallPart]:
        """Parse more of the answer; return the parts that are complete, in order."""
        self._pending += delta
        parts: list[CallPart] = []
        while CALL in self._pending:
            before, _, rest = self._pending.partition(CALL)
            end = _find_call_end(rest)
            text = before.rstrip()
            if end is None:
                self._pending = self._pending[len(text) :]
                return parts + self._add_text(text)
            self._pending = rest[end + len(CALL_CLOSE) :]
            parts += [*self._add_text(text), self._add_call(rest[:end])]
        num_kept = _count_held_back(self._pending)
        end = len(self._pending) - num_kept
        text, self._pending = self._pending[:end], self._pending[end:]
        return parts + self._add_text(text)

    def finish(self) -> list[CallPart]:
        """Return the remaining parts at the end of the answer."""
        parts: list[CallPart] = []
        while CALL in self._pending and CALL_CLOSE in self._pending:
            # The closing token was taken for part of a JSON string that did not end.
            broken, _, self._pending = self._pending.partition(CALL_CLOSE)
            parts += [self._add_call(broken.partition(CALL)[2]), *self.push("")]
        rest, self._pending = self._pending, ""
        return [*parts, InvalidToolCall()] if CALL in rest else parts + self._add_text(rest)

    def _add_call(self, content: str) -> ToolCall | InvalidToolCall:
        self._after_call = True
        return parse_call(content) or InvalidToolCall()

    def _add_text(self, text: str) -> list[CallPart]:
        """Return the text as a part, without white space between calls; [] if none is left."""
        text = text.replace(CALL_CLOSE, "")
        if self._after_call:
            text = text.lstrip()
        if not text:
            return []
        self._after_call = False
        return [text]


def _find_call_end(rest: str) -> int | None:
    """Return the end of the call at the beginning of `rest`; None if it is not complete.

    A closing token inside a JSON string does not end the call.
    """
    end = rest.find(CALL_CLOSE)
    while end >= 0 and '"' in STRINGS.sub("", rest[:end]):
        end = rest.find(CALL_CLOSE, end + 1)
    return None if end < 0 else end


def _count_held_back(text: str) -> int:
    """Return the length of a tail that may begin a call token: white space, then its prefix."""
    for size in range(min(len(text), len(CALL_CLOSE) - 1), 0, -1):
        if any(token.startswith(text[-size:]) for token in CALL_TOKENS):
            return len(text) - len(text[:-size].rstrip())
    return len(text) - len(text.rstrip())
