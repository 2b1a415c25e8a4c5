"""Ming's chat format: template, tokenizer, tool calls and reasoning of one checkpoint."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from sglang_omni.models.answer_grammar import build_answer_grammar
from sglang_omni.models.chat import TokenBytes, TokenizedPrompt, Turn
from sglang_omni.models.ming.prompt.chat import DEFAULT_SYSTEM, render_chat
from sglang_omni.models.ming.prompt.tokenizer import ThinkerTokenizer
from sglang_omni.models.reasoning import ThinkTagParser
from sglang_omni.models.tool_calls import CALL_TOKENS, ToolCallParser, ToolTokenDecoder
from sglang_omni.protocol.tools import Tool, ToolChoice


class MingChatFormat:
    """Implements `ChatFormat` for Ming."""

    default_system = DEFAULT_SYSTEM

    def __init__(self, checkpoint: Path) -> None:
        """Read the tokenizer. Raises `CheckpointError`."""
        self.tokenizer = ThinkerTokenizer(checkpoint)
        self.token_bytes = self.tokenizer.token_bytes
        self.token_name = self.tokenizer.token_name

    @cached_property
    def tool_tokens(self) -> TokenBytes:
        """See `ChatFormat`. Raises `CheckpointError` if the tokenizer has no such tokens."""
        return ToolTokenDecoder(self.tokenizer, map(self.tokenizer.token_id, CALL_TOKENS))

    def tokenize(
        self, messages: Sequence[Turn], thinking: bool = False, tools: Sequence[Tool] = ()
    ) -> TokenizedPrompt:
        """See `ChatFormat`."""
        return self.tokenizer.encode(render_chat(messages, thinking, tools))

    def tool_parser(self) -> ToolCallParser:
        """See `ChatFormat`."""
        return ToolCallParser()

    def reasoning_parser(self) -> ThinkTagParser:
        """See `ChatFormat`."""
        return ThinkTagParser()

    def answer_grammar(
        self, tools: Sequence[Tool], choice: ToolChoice, schema: str | None, thinking: bool
    ) -> str | None:
        """See `ChatFormat`."""
        return build_answer_grammar(tools, choice, schema, thinking)
