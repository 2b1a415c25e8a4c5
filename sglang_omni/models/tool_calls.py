r"""Tool calls as JSON between `<tool_call>` and `</tool_call>`, as most models write them.

A family whose model writes them so uses this parser, and the grammar of `answer_grammar.py`:

    <tool_call>\n{"name": "look", "arguments": {"at": "mill"}}\n</tool_call>
"""

import json
from collections.abc import Iterable
from typing import Any

from sglang_omni.models.chat import TokenBytes
from sglang_omni.models.pending_call import CALL, CALL_CLOSE, CALL_TOKENS, PendingCall
from sglang_omni.protocol.tools import CallPart, InvalidToolCall, ToolCall
from sglang_omni.protocol.unicode import is_unicode


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
    a call token is held back until more text arrives. Apart from the cuts of streamed arguments,
    the result does not depend on the deltas.
    """

    def __init__(self, stream_arguments: bool = False) -> None:
        """Begin an answer.

        With `stream_arguments` the arguments of a call in the usual form are parts before its end,
        and the call has them as they were written. Only a grammar makes that safe: a part cannot be
        taken back if the call turns out to be invalid.
        """
        self._stream_arguments = stream_arguments
        self._pending = ""
        self._call: PendingCall | None = None
        self._after_call = False

    def push(self, delta: str) -> list[CallPart]:
        """Parse more of the answer; return the parts that are complete, in order."""
        parts: list[CallPart] = []
        while delta:
            parse = self._parse_text if self._call is None else self._parse_call
            found, delta = parse(delta)
            parts += found
        return parts

    def finish(self) -> list[CallPart]:
        """Return the remaining parts at the end of the answer."""
        parts: list[CallPart] = []
        while self._call is not None:
            call, self._call, self._after_call = self._call, None, True
            parts.append(InvalidToolCall())
            if call.name is None:
                # The closing token was taken for part of a JSON string that did not end.
                parts += self.push(call.text.partition(CALL_CLOSE)[2])
        rest, self._pending = self._pending, ""
        return parts + self._add_text(rest)

    def _parse_text(self, delta: str) -> tuple[list[CallPart], str]:
        """Return the parts before the next call, and the text after its opening token."""
        before, token, rest = (self._pending + delta).partition(CALL)
        if token:
            self._pending, self._call = "", PendingCall(self._stream_arguments)
            return self._add_text(before.rstrip()), rest
        end = len(before) - _count_held_back(before)
        self._pending = before[end:]
        return self._add_text(before[:end]), ""

    def _parse_call(self, delta: str) -> tuple[list[CallPart], str]:
        """Return the parts up to the end of the call, and the text after its closing token."""
        assert self._call is not None
        call = self._call
        parts: list[CallPart] = [*call.push(delta)]
        if call.end is None:
            return parts, ""
        self._call, self._after_call = None, True
        return [*parts, _to_call(call)], call.text[call.end + len(CALL_CLOSE) :]

    def _add_text(self, text: str) -> list[CallPart]:
        """Return the text as a part, without white space between calls; [] if none is left."""
        text = text.replace(CALL_CLOSE, "")
        if self._after_call:
            text = text.lstrip()
        if not text:
            return []
        self._after_call = False
        return [text]


def _to_call(pending: PendingCall) -> ToolCall | InvalidToolCall:
    """Return a call that has ended. Arguments that were streamed stay as they were written."""
    call = parse_call(pending.text[: pending.end])
    if call is None or pending.name is None:
        return call or InvalidToolCall()
    arguments = pending.arguments
    return InvalidToolCall() if arguments is None else ToolCall(pending.name, arguments)


def _count_held_back(text: str) -> int:
    """Return the length of a tail that may begin a call token: white space, then its prefix."""
    start = text.rfind("<", 1 - len(CALL_CLOSE))
    if start >= 0 and any(token.startswith(text[start:]) for token in CALL_TOKENS):
        return len(text) - len(text[:start].rstrip())
    return len(text) - len(text.rstrip())
