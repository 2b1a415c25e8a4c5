"""Decode the special tokens that enclose a tool call as text."""

from sglang_omni.models.ming.prompt.tokenizer import ThinkerTokenizer
from sglang_omni.models.ming.prompt.tools import CALL_TOKENS


class ToolTokenDecoder:
    """Decodes tokens like the tokenizer, but the special tokens of a tool call as text."""

    def __init__(self, tokenizer: ThinkerTokenizer) -> None:
        """Look up the tokens. Raises `CheckpointError` if the tokenizer has none."""
        self._tokenizer = tokenizer
        self._call_tokens = {tokenizer.token_id(token): token.encode() for token in CALL_TOKENS}

    def token_bytes(self, token_id: int) -> bytes:
        """Return the UTF-8 bytes of a token; empty for any other special token."""
        return self._call_tokens.get(token_id) or self._tokenizer.token_bytes(token_id)
