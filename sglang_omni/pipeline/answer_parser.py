"""Split the text of an answer into reasoning, tool calls and content."""

from collections.abc import Sequence
from typing import Protocol

from sglang_omni.models.chat import ChatFormat, Reasoning, ReasoningParser
from sglang_omni.models.markup import MarkupFilter
from sglang_omni.pipeline.request import ChatRequest
from sglang_omni.protocol.tools import CallPart, ToolCall

Part = CallPart | Reasoning


class _TextParser(Protocol):
    """Splits text into text and other parts; the cuts of the text make no difference."""

    def push(self, delta: str) -> Sequence[Part]:
        """Return the parts that `delta` completes, in order."""

    def finish(self) -> Sequence[Part]:
        """Return what was held back, once the answer has ended."""


class AnswerParser:
    """Parses one answer while it is generated.

    Its parsers follow each other, each for the text that the one before it leaves. What is left in
    the end is content, without the markup of the chat format. A JSON document has none, since its
    grammar excludes it; a tag in one of its strings is data. What continues a prompt of tokens is
    left as it is.

    Attributes:
        has_ended: Whether what follows is not part of the answer: the one call that the request
            allows is complete.
    """

    def __init__(self, request: ChatRequest, chat: ChatFormat, stream_arguments: bool) -> None:
        """Begin an answer to `request`; see `ChatFormat.tool_parser` for `stream_arguments`."""
        is_raw = request.prompt_ids is not None
        is_document = request.sampling.json_schema is not None or is_raw
        self._parsers: list[_TextParser] = []
        self._reasoning: ReasoningParser | None = None
        if request.thinking or not is_document:
            self._reasoning = chat.reasoning_parser()
            self._parsers.append(self._reasoning)
        if request.tools:
            self._parsers.append(chat.tool_parser(stream_arguments))
        if not is_document:
            self._parsers.append(MarkupFilter(chat.markup))
        self._only_parser: _TextParser | None = None
        self._has_only_text = not is_document and not request.tools
        self._is_parallel = request.tool_choice.parallel
        self.has_ended = False

    def push(self, delta: str) -> Sequence[Part]:
        """Return the parts that `delta` completes, in order."""
        if self._only_parser is not None:
            return self._only_parser.push(delta)
        parts: Sequence[Part] = [delta] if delta else []
        for parser in self._parsers:
            parts = _parse(parser, parts)
        if self._reasoning is not None and self._reasoning.has_ended:
            self._parsers.remove(self._reasoning)
            self._reasoning = None
            # Most answers are plain text. From here on they cost one call per token.
            self._only_parser = self._parsers[0] if self._has_only_text else None
        return self._limit_calls(parts)

    def finish(self) -> Sequence[Part]:
        """Return the remaining parts at the end of the answer."""
        parts: Sequence[Part] = []
        for parser in self._parsers:
            parts = [*_parse(parser, parts), *parser.finish()]
        return self._limit_calls(parts)

    def _limit_calls(self, parts: Sequence[Part]) -> Sequence[Part]:
        """Return the parts up to the first call, if the answer may have only one."""
        if self._is_parallel:
            return parts
        if self.has_ended:
            return []
        for index, part in enumerate(parts):
            if isinstance(part, ToolCall):
                self.has_ended = True
                return parts[: index + 1]
        return parts


def _parse(parser: _TextParser, parts: Sequence[Part]) -> Sequence[Part]:
    """Return the parts with their text parsed further."""
    return [
        result
        for part in parts
        for result in (parser.push(part) if isinstance(part, str) else (part,))
    ]
