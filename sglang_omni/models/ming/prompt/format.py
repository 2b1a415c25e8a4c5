"""Ming's chat format: template, tokenizer, tool calls and reasoning of one checkpoint."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from sglang_omni.models.answer_grammar import build_answer_grammar
from sglang_omni.models.chat import TokenBytes, TokenizedPrompt, Turn
from sglang_omni.models.ming.prompt.chat import DEFAULT_SYSTEM, ROLE_END, render_chat
from sglang_omni.models.ming.prompt.tokenizer import ThinkerTokenizer
from sglang_omni.models.pending_call import CALL_TOKENS
from sglang_omni.models.reasoning import THINK_TAGS, ThinkTagParser
from sglang_omni.models.tool_calls import ToolCallParser, ToolTokenDecoder
from sglang_omni.protocol.tools import Tool, ToolChoice


class MingChatFormat:
    """Implements `ChatFormat` for Ming."""

    default_system = DEFAULT_SYSTEM
    # The marks of roles are special tokens. As text, `<role>` is an element of somebody's XML.
    markup = (*THINK_TAGS, *CALL_TOKENS, ROLE_END.token)

    def __init__(self, checkpoint: Path) -> None:
        """Read the tokenizer. Raises `CheckpointError`."""
        self.tokenizer = ThinkerTokenizer(checkpoint)
        self.token_bytes = self.tokenizer.token_bytes
        self.token_name = self.tokenizer.token_name
        self.encode_prompt = self.tokenizer.encode_prompt
        self.vocabulary_size = self.tokenizer.vocabulary_size

    @cached_property
    def tool_tokens(self) -> TokenBytes:
        """See `ChatFormat`. Raises `CheckpointError` if the tokenizer has no such tokens."""
        return ToolTokenDecoder(self.tokenizer, map(self.tokenizer.token_id, CALL_TOKENS))

    def tokenize(
        self, messages: Sequence[Turn], thinking: bool = False, tools: Sequence[Tool] = ()
    ) -> TokenizedPrompt:
        """See `ChatFormat`."""
        return self.tokenizer.encode(render_chat(messages, thinking, tools))

    def tool_parser(self, stream_arguments: bool = False) -> ToolCallParser:
        """See `ChatFormat`."""
        return ToolCallParser(stream_arguments)

    def reasoning_parser(self) -> ThinkTagParser:
        """See `ChatFormat`."""
        return ThinkTagParser()

    def answer_grammar(
        self, tools: Sequence[Tool], choice: ToolChoice, schema: str | None, thinking: bool
    ) -> str | None:
        """See `ChatFormat`."""
        return build_answer_grammar(tools, choice, schema, thinking)
