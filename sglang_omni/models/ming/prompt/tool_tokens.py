"""Decoding the marks of tool calls, which are special tokens, as text."""

from sglang_omni.models.ming.prompt.tokenizer import ThinkerTokenizer
from sglang_omni.models.ming.prompt.tools import MARKS


class ToolTokenDecoder:
    """A tokenizer under which the marks of a call, which are special tokens, read as text."""

    def __init__(self, tokenizer: ThinkerTokenizer) -> None:
        """Raises `CheckpointError` when the tokenizer has no such tokens."""
        self._tokenizer = tokenizer
        self._marks = {tokenizer.token_id(mark): mark.encode() for mark in MARKS}

    def token_bytes(self, token_id: int) -> bytes:
        """UTF-8 bytes of one token, empty for any other special token."""
        return self._marks.get(token_id) or self._tokenizer.token_bytes(token_id)
