"""The text of one tool call between its tokens, while it is generated."""

import re

from sglang_omni.protocol.tools import ToolCallDelta, ToolCallStart

CALL, CALL_CLOSE = CALL_TOKENS = "<tool_call>", "</tool_call>"
# The beginning of a call in the form of the model's training, up to its object of arguments.
_HEADER = re.compile(r'\s*\{\s*"name"\s*:\s*"([^"\\]*)"\s*,\s*"arguments"\s*:\s*(?=\{)')
_OUTSIDE_STRING = re.compile(rf'["{{}}]|{CALL_CLOSE}')
_INSIDE_STRING = re.compile(r'"|\\.', re.DOTALL)
# Braces around the arguments: those of the call and their own.
_ARGUMENTS_DEPTH = 2


class PendingCall:
    """Finds the end of a call and, on request, its arguments before that.

    A closing token inside a JSON string does not end the call. Each character is scanned once, so
    the work per token does not grow with the call.

    Attributes:
        text: The text after the opening token, as far as it is known.
        end: Where the closing token begins in `text`; None until it is complete.
        name: The name of the function, if the arguments are read before the end.
    """

    def __init__(self, stream_arguments: bool) -> None:
        """Begin a call. Without `stream_arguments` nothing is known of it before its end."""
        self.text = ""
        self.end: int | None = None
        self.name: str | None = None
        self._stream_arguments = stream_arguments
        self._num_scanned = self._num_sent = 0
        self._is_in_string = False
        self._depth = 0
        self._arguments_start = 0
        self._arguments_end: int | None = None

    @property
    def arguments(self) -> str | None:
        """Return the arguments as they were written; None if they did not end."""
        if self.name is None or self._arguments_end is None:
            return None
        return self.text[self._arguments_start : self._arguments_end]

    def push(self, delta: str) -> list[ToolCallStart | ToolCallDelta]:
        """Take more text. Return what is new of the arguments if they are streamed."""
        self.text += delta
        parts: list[ToolCallStart | ToolCallDelta] = []
        if self._stream_arguments and self.name is None and self._find_arguments():
            assert self.name is not None
            parts.append(ToolCallStart(self.name))
        self._scan()
        end = self._num_scanned if self._arguments_end is None else self._arguments_end
        if self.name is not None and end > self._num_sent:
            parts.append(ToolCallDelta(self.text[self._num_sent : end]))
            self._num_sent = end
        return parts

    def _find_arguments(self) -> bool:
        """Return whether the arguments begin in the known text, in the usual form of a call."""
        header = _HEADER.match(self.text) if self._depth < _ARGUMENTS_DEPTH else None
        if header is None:
            return False
        self.name = header[1]
        self._arguments_start = self._num_sent = header.end()
        return True

    def _scan(self) -> None:
        while self.end is None and (mark := self._find_mark()):
            if mark[0] == CALL_CLOSE:
                self.end = mark.start()
            self._num_scanned = mark.end() if self.end is None else self.end
            self._apply_mark(mark)
        if self.end is None:
            self._num_scanned = max(self._num_scanned, len(self.text) - self._count_held_back())

    def _find_mark(self) -> re.Match[str] | None:
        pattern = _INSIDE_STRING if self._is_in_string else _OUTSIDE_STRING
        return pattern.search(self.text, self._num_scanned)

    def _apply_mark(self, mark: re.Match[str]) -> None:
        match mark[0]:
            case '"':
                self._is_in_string = not self._is_in_string
            case "{":
                self._depth += 1
            case "}":
                is_end = self._depth == _ARGUMENTS_DEPTH and mark.start() >= self._arguments_start
                if is_end and self._arguments_end is None:
                    self._arguments_end = mark.end()
                self._depth -= 1

    def _count_held_back(self) -> int:
        """Return the length of a tail that may begin an escape or the closing token."""
        if self._is_in_string:
            return int(self.text.endswith("\\", self._num_scanned))
        start = self.text.rfind("<", max(self._num_scanned, len(self.text) + 1 - len(CALL_CLOSE)))
        is_beginning = start >= 0 and CALL_CLOSE.startswith(self.text[start:])
        return len(self.text) - start if is_beginning else 0
